/** Ids are unique, and what lists ids names resources of the module. */
import type { LocatedMap } from '../located.js';
import { suggestion } from '../nearest.js';
import type { OutlineEntry } from '../outline.js';
import { quoted } from '../printable.js';
import type { Named } from '../read-located.js';
import type { RuleContext } from './rule.js';

export function checkIds(context: RuleContext): void {
  const known = collectIds(context);
  for (const entry of context.outline.entries) {
    for (const id of entry.dependsOn) checkKnown('depends_on', id, known, context);
    for (const { triggers } of entry.options) {
      for (const { field, ids } of triggers) for (const id of ids) checkKnown(field, id, known, context);
      checkTriggers(triggers, context);
    }
  }
}

function collectIds({ outline, mistakes, lineOf }: RuleContext): ReadonlyMap<string, Named> {
  const known = new Map<string, Named>();
  for (const { id } of outline.entries) {
    if (id === null) continue;
    const first = known.get(id.text);
    if (first === undefined) known.set(id.text, id);
    else {
      const message = `id ${quoted(id.text)} is already used by the resource on line ${lineOf(first)}`;
      mistakes.error('duplicate_id', message, id.path, id);
    }
  }
  return known;
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

/** A change either reloads or restarts. */
function checkTriggers(triggers: OutlineEntry['options'][number]['triggers'], { mistakes }: RuleContext): void {
  const idsOf = (wanted: string) => triggers.find(({ field }) => field === wanted)?.ids ?? [];
  const restarts = new Set(idsOf('restart_on').map((id) => id.text));
  for (const id of idsOf('reload_on')) {
    if (!restarts.has(id.text)) continue;
    const message = `${quoted(id.text)} is in both reload_on and restart_on; keep it in one of them`;
    mistakes.error('trigger_ambiguous', message, id.path, id);
  }
}
