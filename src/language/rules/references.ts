/** Rules on references inside a module: ids, and dependencies without cycles. */
import { type Dependencies, findCycles } from '../../kernel/order.js';
import type { LocatedMap, Named } from '../located.js';
import { suggestion } from '../nearest.js';
import type { Outline, OutlineEntry, RuleContext } from '../outline.js';
import { quoted } from '../printable.js';

/** Checks that ids are unique and that lists of ids name resources of the module. */
export function checkIds(context: RuleContext): void {
  const known = collectIds(context);
  for (const { dependsOn } of context.outline.groups) {
    for (const id of dependsOn) checkKnown('depends_on', id, known, context);
  }
  for (const entry of context.outline.entries) {
    for (const id of entry.dependsOn) checkKnown('depends_on', id, known, context);
    for (const { triggers } of entry.options) {
      for (const { field, ids } of triggers) for (const id of ids) checkKnown(field, id, known, context);
      checkTriggers(triggers, context);
    }
    checkOwnGroup(entry, context);
  }
}

function collectIds({ outline, mistakes, lineOf }: RuleContext): ReadonlyMap<string, Named> {
  const known = new Map<string, Named>();
  const ids = [...outline.groups, ...outline.entries].flatMap(({ id }) => (id === null ? [] : [id]));
  for (const id of ids.sort((a, b) => a.start - b.start)) {
    const first = known.get(id.text);
    if (first === undefined) known.set(id.text, id);
    // The packages of one list share the id of their entry.
    else if (first.start !== id.start) {
      const message = `id ${quoted(id.text)} is already used by the resource on line ${lineOf(first)}`;
      mistakes.error('duplicate_id', message, id.path, id);
    }
  }
  return known;
}

/** Checks that a resource does not name the group that holds it. */
function checkOwnGroup(entry: OutlineEntry, { mistakes }: RuleContext): void {
  const own = entry.group?.id?.text;
  for (const id of own === undefined ? [] : namedBy(entry)) {
    if (id.text !== own) continue;
    const message = `${quoted(own)} is the group that holds this resource, which cannot follow itself; name resources of the group`;
    mistakes.error('dependency_cycle', message, id.path, id);
  }
}

function checkKnown(field: string, id: Named, known: ReadonlyMap<string, Named>, context: RuleContext): void {
  const { outline, mistakes, lineOf } = context;
  if (known.has(id.text)) return;
  const message = `${field} names ${quoted(id.text)}, but no resource of this module has that id`;
  const labelled = outline.entries.find(({ node }) => textOf(node, 'name') === id.text);
  const advice = labelled
    ? `; the one on line ${lineOf(labelled.node)} only has it as its name`
    : suggestion(id.text, known.keys());
  mistakes.error('unknown_id', message + advice, id.path, id);
}

function textOf(node: LocatedMap, name: string): string | null {
  const value = node.members.get(name)?.value;
  return value?.type === 'scalar' && typeof value.value === 'string' ? value.value : null;
}

/** Checks that a change either reloads or restarts a service. */
function checkTriggers(triggers: OutlineEntry['options'][number]['triggers'], { mistakes }: RuleContext): void {
  const idsOf = (wanted: string) => triggers.find(({ field }) => field === wanted)?.ids ?? [];
  const restarts = new Set(idsOf('restart_on').map((id) => id.text));
  for (const id of idsOf('reload_on')) {
    if (!restarts.has(id.text)) continue;
    const message = `${quoted(id.text)} is in both reload_on and restart_on; keep it in one of them`;
    mistakes.error('trigger_ambiguous', message, id.path, id);
  }
}

/** Returns the positions before each entry, from `depends_on` and the triggers of all variants. */
export function dependenciesOf({ entries }: Outline): Dependencies {
  const positions = positionsOf({ entries });
  return entries.map((entry, index) => {
    const named = [...(entry.group?.dependsOn ?? []), ...namedBy(entry)];
    const own = entry.group?.id?.text;
    const found = named.flatMap(({ text }) => (text === own ? [] : (positions.get(text) ?? [])));
    return [...new Set(found)].filter(
      (position) => position !== index || named.some(({ text }) => text === entry.id?.text),
    );
  });
}

/** Returns the positions that each id names: that of a resource, or those of the resources of a group. */
function positionsOf({ entries }: Pick<Outline, 'entries'>): ReadonlyMap<string, readonly number[]> {
  const positions = new Map<string, number[]>();
  for (const [index, { id, group }] of entries.entries()) {
    for (const name of new Set([id?.text, group?.id?.text])) {
      if (name === undefined) continue;
      const found = positions.get(name);
      if (found === undefined) positions.set(name, [index]);
      else found.push(index);
    }
  }
  return positions;
}

const namedBy = ({ dependsOn, options }: OutlineEntry): readonly Named[] => [
  ...dependsOn,
  ...options.flatMap(({ triggers }) => triggers.flatMap(({ ids }) => ids)),
];

export function checkCycles({ outline, mistakes }: RuleContext): void {
  const { entries } = outline;
  const positions = positionsOf(outline);
  for (const cycle of findCycles(dependenciesOf(outline))) {
    const members = cycle.flatMap((index) => entries[index] ?? []);
    const [first] = members;
    const next = cycle[1] ?? cycle[0] ?? -1;
    const named = first === undefined ? [] : [...namedBy(first), ...(first.group?.dependsOn ?? [])];
    const link = named.find(({ text }) => positions.get(text)?.includes(next));
    if (link === undefined) continue;
    mistakes.error('dependency_cycle', `dependency cycle: ${showCycle(members)}`, link.path, link);
  }
}

/** Formats a cycle as `a -> b -> a`; each entry depends on the next. */
function showCycle(members: readonly OutlineEntry[]): string {
  const names = members.map(({ id, group }) => id?.text ?? group?.id?.text ?? '');
  const shown = [...names, names[0] ?? ''].map((name) => quoted(name).slice(1, -1));
  return shown.length > 22 ? [...shown.slice(0, 20), '…', ...shown.slice(-1)].join(' -> ') : shown.join(' -> ');
}
