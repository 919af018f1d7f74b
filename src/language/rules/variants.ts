/** Rules on agents: a module's `supports`, and variants without ties and gaps. */
import { isTagKey, isTagValue, TAG_KEY_RULE, TAG_VALUE_RULE } from '../../kernel/ids.js';
import { escapePointer } from '../../kernel/validator.js';
import { canApplyTogether, choicesAmong, findGap, type SupportedAgents, showClause } from '../clause.js';
import { hasExpression } from '../expression.js';
import { isEntryKey } from '../kind-choice.js';
import { type KindSet, kindNames } from '../kind-set.js';
import { items, type Located, type LocatedMap, member } from '../located.js';
import { kindsNamed } from '../meant-key.js';
import { suggestion } from '../nearest.js';
import type { OutlineEntry, RuleContext } from '../outline.js';
import { quoted } from '../printable.js';
import { KNOWN_DISTROS } from '../schema.js';

export function checkVariants(context: RuleContext, reach: SupportedAgents): void {
  for (const entry of context.outline.entries) {
    if (entry.variants === null || entry.variants.length === 0) continue;
    checkTies(entry.variants, context, reach);
    checkGap(entry, entry.variants, context, reach);
  }
}

type Variants = NonNullable<OutlineEntry['variants']>;

function checkTies(variants: Variants, { mistakes, lineOf }: RuleContext, reach: SupportedAgents): void {
  const choices = choicesAmong(variants.map(({ when }) => when));
  const bySize = new Map<number, number[]>();
  for (const [index, variant] of variants.entries()) {
    const size = Object.keys(variant.when).length;
    const earlier = bySize.get(size) ?? [];
    const choice = choices[index];
    const tied = earlier.find((other) => {
      const rival = choices[other];
      return !reach.budget.exhausted && choice && rival && canApplyTogether(choice, rival, reach);
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

function checkGap(
  entry: OutlineEntry,
  variants: Variants,
  { outline, mistakes }: RuleContext,
  reach: SupportedAgents,
): void {
  // A clause that cannot be read may close the gap.
  const isWhole = variants.length === items(member(entry.node, 'variants')).length;
  if (outline.supports.length === 0 || !isWhole) return;
  const gap = findGap(
    variants.map(({ when }) => when),
    reach,
  );
  const clause = outline.supports[gap];
  const key = entry.node.members.get('variants')?.key;
  if (clause === undefined || key === undefined) return;
  const message = `some agents that supports allows (${showClause(clause.clause)}) match no variant of this resource; add one for them, such as "when: {}" for all the others, or use "if" where the others are to have none`;
  mistakes.warning('variant_gap', message, `${entry.path}/variants`, key);
}

/** Checks that `supports` names agents with known attributes and valid tags. */
export function checkSupports({ outline, mistakes }: RuleContext): void {
  const { root } = outline;
  const supports = root.type === 'map' ? root.members.get('supports') : undefined;
  const listed = supports?.value;
  if (listed === undefined || isEmpty(listed)) {
    const message =
      'supports is empty, so that this module applies to no agent; add a clause such as {platform: linux}';
    mistakes.warning('supports_empty', message, '/supports', supports?.key ?? root);
  }
  for (const [index, node] of items(listed).entries()) checkClause(node, `/supports/${index}`, mistakes);
  for (const entry of outline.entries) {
    const variants = items(member(entry.node, 'variants'));
    for (const [index, variant] of variants.entries()) {
      checkClause(member(variant, 'when'), `${entry.path}/variants/${index}/when`, mistakes);
    }
  }
}

const isEmpty = (node: Located): boolean =>
  (node.type === 'list' && node.items.length === 0) || (node.type === 'scalar' && node.value === null);

export function checkClause(clause: Located | undefined, path: string, mistakes: RuleContext['mistakes']): void {
  checkDistro(clause, path, mistakes);
  if (clause?.type !== 'map') return;
  for (const [name, { key, value }] of clause.members) {
    if (!name.startsWith('tag.')) continue;
    const problem = unmatchable(name.slice('tag.'.length), value);
    if (problem === null) continue;
    const message = `this clause matches no agent, because ${problem}`;
    mistakes.warning('clause_unmatchable', message, `${path}/${escapePointer(name)}`, key);
  }
}

/** Returns why no agent can have a tag with this value, or null. */
function unmatchable(key: string, value: Located): string | null {
  if (!isTagKey(key)) return `no tag can be called ${quoted(key)}: ${TAG_KEY_RULE}`;
  const text = value.type === 'scalar' && typeof value.value === 'string' ? value.value : null;
  if (text === null || hasExpression(text) || isTagValue(text)) return null;
  return `no tag has such a value: ${TAG_VALUE_RULE}`;
}

function checkDistro(clause: Located | undefined, path: string, mistakes: RuleContext['mistakes']): void {
  const node = member(clause, 'distro');
  if (node?.type !== 'scalar' || typeof node.value !== 'string' || node.value === '') return;
  const { value } = node;
  if (KNOWN_DISTROS.some((known) => known === value)) return;
  const meant = suggestion(value, KNOWN_DISTROS) || `; known: ${KNOWN_DISTROS.join(', ')}`;
  mistakes.warning('unknown_distro', `${quoted(value)} is not a known distro${meant}`, `${path}/distro`, node);
}

/** True for a key that is reported as the name of no kind. */
const isMeantAsKind = (name: string, kinds: KindSet): boolean =>
  !isEntryKey(name) && kindsNamed(name, kindNames(kinds)).length > 0;

/** Checks that an entry and each of its variants make one thing, and that kinds stand below `resource`. */
export function checkChoice({ outline, mistakes }: RuleContext, kinds: KindSet): void {
  for (const { node, path } of outline.entries) {
    checkMaking(node, path, { mistakes, kinds, isVariant: false });
    for (const [index, variant] of items(member(node, 'variants')).entries()) {
      if (variant.type !== 'map') continue;
      checkMaking(variant, `${path}/variants/${index}`, { mistakes, kinds, isVariant: true });
    }
  }
  for (const { node, path } of outline.groups) {
    for (const name of ['resource', 'absent', 'variants']) {
      const beside = node.members.get(name);
      if (beside === undefined) continue;
      const message = `"${name}" cannot stand beside "resources"; make it an entry of the group, or one beside the group`;
      mistakes.error('resource_ambiguous', message, `${path}/${name}`, beside.key);
    }
  }
}

interface MakingContext extends Pick<RuleContext, 'mistakes'> {
  readonly kinds: KindSet;
  readonly isVariant: boolean;
}

/** Checks that an entry or a variant has exactly one of `resource`, `absent` and, in an entry, `variants`. */
function checkMaking({ members, ...place }: LocatedMap, path: string, { mistakes, kinds, isVariant }: MakingContext) {
  const resource = members.get('resource');
  const variants = isVariant ? undefined : members.get('variants');
  const absent = members.get('absent');
  if (absent && (resource || variants)) {
    const mend = isVariant ? 'a variant has one of them' : 'make two entries of it';
    const message = `"absent" stands in place of "${resource ? 'resource' : 'variants'}"; ${mend}`;
    mistakes.error('resource_ambiguous', message, `${path}/absent`, absent.key);
  } else if (absent) {
    const message = '"absent" must be a mapping with one kind, such as absent: {file-unix: {path: /etc/motd}}';
    mistakes.error('wrong_type', message, `${path}/absent`, absent.value);
  } else if (resource && variants) {
    const later = resource.key.start > variants.key.start ? resource : variants;
    const message = 'a resource has either "resource" or "variants", not both';
    mistakes.error('resource_ambiguous', message, `${path}/${later === resource ? 'resource' : 'variants'}`, later.key);
  } else if (!resource && !variants && ![...members.keys()].some((name) => isMeantAsKind(name, kinds))) {
    const others = isVariant ? '"absent"' : '"absent" or "variants"';
    const message = `a ${isVariant ? 'variant' : 'resource'} needs its kind, such as file-unix: {path: /etc/motd}, or ${others}`;
    mistakes.error('resource_missing', message, path, place);
  }
}
