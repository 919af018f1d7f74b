/** A module names the agents that it is for, in words that agents use. */

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
  for (const [index, node] of items(listed).entries()) checkDistro(node, `/supports/${index}`, mistakes);
  for (const entry of outline.entries) {
    const variants = items(member(entry.node, 'variants'));
    for (const [index, variant] of variants.entries()) {
      checkDistro(member(variant, 'when'), `${entry.path}/variants/${index}/when`, mistakes);
    }
  }
}

const isEmpty = (node: Located): boolean =>
  (node.type === 'list' && node.items.length === 0) || (node.type === 'scalar' && node.value === null);

function checkDistro(clause: Located | undefined, path: string, mistakes: RuleContext['mistakes']): void {
  const node = member(clause, 'distro');
  if (node?.type !== 'scalar' || typeof node.value !== 'string' || node.value === '') return;
  const { value } = node;
  if (KNOWN_DISTROS.some((known) => known === value)) return;
  const meant = suggestion(value, KNOWN_DISTROS) || `; known: ${KNOWN_DISTROS.join(', ')}`;
  mistakes.warning('unknown_distro', `${quoted(value)} is not a known distro${meant}`, `${path}/distro`, node);
}
