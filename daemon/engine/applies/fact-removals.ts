/** Finds the resources that an apply would remove only because facts of the agent have changed. */
import { isFault } from '../../../src/kernel/fault.js';
import { isSameJson } from '../../../src/kernel/json.js';
import type { ReadFacts } from '../../../src/language/facts-read.js';
import type { Value } from '../../../src/language/values.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { keyText, resourceKey } from '../../../src/resources/resource-key.js';
import type { Queryable } from '../../database/schema.js';
import { findOperation } from '../operations/operation-store.js';
import type { AppliedResourceRow } from '../state/applied-resource-store.js';

interface FactRemovalsInput {
  /** Operation of the believed state; null without one. */
  readonly stateOperationId: string | null;
  readonly removed: readonly AppliedResourceRow[];
  /** Reported facts on which the new content depends. */
  readonly now: ReadFacts;
  /** Returns the resources that the agent would have with other values of facts, everything else as it is now. */
  resourcesWith(facts: ReadFacts): Promise<readonly DesiredResource[]>;
}

/** Changes of facts by removed resource, such as `attributes.memory_mb changed from 4096 to 1024`. */
export type FactRemovals = ReadonlyMap<AppliedResourceRow, string>;

export const NO_FACT_REMOVALS: FactRemovals = new Map();

/** Earlier applies whose facts are tried. */
const TRIED = 8;

/**
 * Returns the removed resources that the agent would keep if it still reported what it did when they were applied. Modules, values,
 * tags and assignments are those of now, so a removal that a person has caused is not among them.
 */
export async function removalsByFacts(
  db: Queryable,
  { stateOperationId, removed, now, resourcesWith }: FactRemovalsInput,
): Promise<FactRemovals> {
  const found = new Map<AppliedResourceRow, string>();
  const applies = new Set([stateOperationId, ...removed.map((row) => row.operation_id)]);
  const tried: ReadFacts[] = [];
  for (const operationId of [...applies].slice(0, TRIED)) {
    if (found.size === removed.length) break;
    const before = operationId === null ? null : ((await findOperation(db, operationId))?.facts ?? null);
    if (before === null) continue;
    const changed = changedFacts(before, now);
    if (Object.keys(changed).length === 0 || tried.some((other) => isSameJson(other, changed))) continue;
    tried.push(changed);
    const kept = await keysWith(changed, resourcesWith);
    const gone = removed.filter((row) => !found.has(row) && kept.has(keyText(row)));
    const alone = gone.length === 0 ? [] : await keptByOne(changed, resourcesWith);
    for (const row of gone) {
      const names = alone.filter((one) => one.kept.has(keyText(row))).map(({ name }) => name);
      found.set(row, changeText(names.length === 0 ? Object.keys(changed) : names, changed, now));
    }
  }
  return found;
}

/** Facts that are looked at one by one. */
const ALONE = 8;

/** Returns for each fact the resources that the agent would have if only this one were as before. */
async function keptByOne(
  facts: ReadFacts,
  resourcesWith: FactRemovalsInput['resourcesWith'],
): Promise<readonly { readonly name: string; readonly kept: ReadonlySet<string> }[]> {
  const entries = Object.entries(facts);
  if (entries.length === 1 || entries.length > ALONE) return [];
  const all: { name: string; kept: ReadonlySet<string> }[] = [];
  for (const [name, value] of entries) all.push({ name, kept: await keysWith({ [name]: value }, resourcesWith) });
  return all;
}

/** Returns the earlier values of the facts that differ now. A fact that was not read then is the doing of a module's author. */
function changedFacts(before: ReadFacts, now: ReadFacts): ReadFacts {
  return Object.fromEntries(
    Object.entries(now).flatMap(([name, value]) => {
      const earlier = before[name];
      return earlier === undefined || isSameJson(earlier, value) ? [] : [[name, earlier]];
    }),
  );
}

async function keysWith(
  facts: ReadFacts,
  resourcesWith: FactRemovalsInput['resourcesWith'],
): Promise<ReadonlySet<string>> {
  try {
    return new Set((await resourcesWith(facts)).map(resourceKey));
  } catch (error) {
    // The stored modules were changed since and need the present facts, so a person caused the removals.
    if (isFault(error)) return new Set();
    throw error;
  }
}

/** Maximum number of changes that a text names. */
const NAMED = 3;

function changeText(changed: readonly string[], before: ReadFacts, now: ReadFacts): string {
  const names = [...changed].sort();
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more changed` : '';
  return `${names
    .slice(0, NAMED)
    .map((name) => changeOf(name, before[name] ?? null, now[name] ?? null))
    .join(', ')}${more}`;
}

function changeOf(name: string, before: Value | null, now: Value | null): string {
  if (now === null) return `${name} is missing, and was ${shown(before)}`;
  return before === null
    ? `${name} is ${shown(now)}, and was missing`
    : `${name} changed from ${shown(before)} to ${shown(now)}`;
}

function shown(value: Value | null): string {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
