/** Variants decide without a tie and leave no supported agent without a resource. */
import { showClause } from '../clause.js';
import type { OutlineEntry } from '../outline.js';
import { canMeet, choicesAmong, findGap, type Reach } from '../reach.js';
import { items, member } from '../read-located.js';
import type { RuleContext } from './rule.js';

export function checkVariants(context: RuleContext, reach: Reach): void {
  for (const entry of context.outline.entries) {
    if (entry.variants === null || entry.variants.length === 0) continue;
    checkTies(entry.variants, context, reach);
    checkGap(entry, entry.variants, context, reach);
  }
}

type Variants = NonNullable<OutlineEntry['variants']>;

function checkTies(variants: Variants, { mistakes, lineOf }: RuleContext, reach: Reach): void {
  const choices = choicesAmong(variants.map(({ when }) => when));
  const bySize = new Map<number, number[]>();
  for (const [index, variant] of variants.entries()) {
    const size = Object.keys(variant.when).length;
    const earlier = bySize.get(size) ?? [];
    const choice = choices[index];
    const tied = earlier.find((other) => {
      const rival = choices[other];
      return !reach.budget.exhausted && choice && rival && canMeet(choice, rival, reach);
    });
    const first = tied === undefined ? undefined : variants[tied];
    if (first !== undefined) {
      const agents = { ...first.when, ...variant.when };
      const matched = Object.keys(agents).length === 0 ? 'every agent' : `an agent with ${showClause(agents)}`;
      const message = `this variant and the one on line ${lineOf(first.node)} both match ${matched}, and neither is more specific`;
      mistakes.error('variant_tie', message, variant.path, variant.node);
    }
    earlier.push(index);
    bySize.set(size, earlier);
  }
}

function checkGap(entry: OutlineEntry, variants: Variants, { outline, mistakes }: RuleContext, reach: Reach): void {
  // A clause that cannot be read may be the one that closes the gap.
  const isWhole = variants.length === items(member(entry.node, 'variants')).length;
  if (outline.supports.length === 0 || !isWhole) return;
  const gap = findGap(
    variants.map(({ when }) => when),
    reach,
  );
  const clause = outline.supports[gap];
  const key = entry.node.members.get('variants')?.key;
  if (clause === undefined || key === undefined) return;
  const message = `some agents that supports allows (${showClause(clause.clause)}) match no variant of this resource; add one for them, such as "when: {}" for all the others`;
  mistakes.warning('variant_gap', message, `${entry.path}/variants`, key);
}
