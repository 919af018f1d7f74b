/** A module names the agents that it is for, in words that agents use. */

import { isTagKey, isTagValue, TAG_KEY_RULE, TAG_VALUE_RULE } from '../../kernel/identifiers.js';
import { escapePointer } from '../../kernel/validator.js';
import { hasExpression } from '../expression.js';
import type { Located } from '../located.js';
import { suggestion } from '../nearest.js';
import { quoted } from '../printable.js';
import { items, member } from '../read-located.js';
import { KNOWN_DISTROS } from '../schema.js';
import type { RuleContext } from './rule.js';

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

function checkClause(clause: Located | undefined, path: string, mistakes: RuleContext['mistakes']): void {
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

/** Why no agent has a tag with that value, or null. */
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
