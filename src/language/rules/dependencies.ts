/** The graph of a module's dependencies, and that it has no cycle. */
import { type Dependencies, findCycles } from '../order.js';
import type { Outline, OutlineEntry } from '../outline.js';
import { quoted } from '../printable.js';
import type { Named } from '../read-located.js';
import type { RuleContext } from './rule.js';

/** For each entry the entries that come before it: `depends_on` and the triggers of every variant. */
export function dependenciesOf({ entries }: Outline): Dependencies {
  const positions = new Map<string, number>();
  for (const [index, { id }] of entries.entries()) {
    if (id !== null && !positions.has(id.text)) positions.set(id.text, index);
  }
  return entries.map((entry) => [...new Set(namedBy(entry).flatMap((id) => positions.get(id.text) ?? []))]);
}

const namedBy = ({ dependsOn, options }: OutlineEntry): readonly Named[] => [
  ...dependsOn,
  ...options.flatMap(({ triggers }) => triggers.flatMap(({ ids }) => ids)),
];

export function checkCycles({ outline, mistakes }: RuleContext): void {
  const { entries } = outline;
  for (const cycle of findCycles(dependenciesOf(outline))) {
    const members = cycle.flatMap((index) => entries[index] ?? []);
    const [first] = members;
    const next = members[1] ?? first;
    const link = first && namedBy(first).find((id) => id.text === next?.id?.text);
    if (link === undefined) continue;
    mistakes.error('dependency_cycle', `dependency cycle: ${showCycle(members)}`, link.path, link);
  }
}

/** `a -> b -> a`: each depends on the one behind the arrow. */
function showCycle(members: readonly OutlineEntry[]): string {
  const names = members.map(({ id }) => id?.text ?? '');
  const shown = [...names, names[0] ?? ''].map((name) => quoted(name).slice(1, -1));
  return shown.length > 22 ? [...shown.slice(0, 20), '…', ...shown.slice(-1)].join(' -> ') : shown.join(' -> ');
}
