/** Rows of the facts that agents report beside their attributes. */
import type { OwnFacts, PartedAttributes, VolatileFacts } from '../../src/kernel/facts.js';
import type { JsonValue } from '../../src/kernel/json.js';
import type { ReportedFacts } from '../../src/language/evaluate.js';
import { jsonColumns } from '../database/json-columns.js';
import { preparedQuery } from '../database/prepared-query.js';
import type { Queryable } from '../database/schema.js';

/** A fact of one's own as it is kept. */
export interface StoredFact {
  /** Its last value; absent for one that never had any. */
  readonly value?: JsonValue;
  /** Why the value is stale or missing; null for a current one. */
  readonly error: string | null;
  /** Unix milliseconds since which there is the error; null without one. */
  readonly since: number | null;
}

export interface StoredFacts {
  readonly parts: PartedAttributes;
  readonly volatile: VolatileFacts;
  /** By name. */
  readonly own: Readonly<Record<string, StoredFact>>;
  /** Why the agent may have left out facts of its own; null if these are all. */
  readonly problem: string | null;
  /** Names of the packages whose versions `parts.packages` has, if they are installed; absent for none. */
  readonly asked?: readonly string[];
}

/** Facts of an agent that has reported none. */
export const NO_FACTS: StoredFacts = { parts: {}, volatile: {}, own: {}, problem: null };

interface FactValues {
  readonly facts: StoredFacts;
}

const columns = jsonColumns<FactValues>({ facts: true });

export interface FactReport extends FactValues {
  /** Unix milliseconds. */
  readonly reported_at: number;
}

/** Returns null for an agent that has reported none. */
export async function findFacts(db: Queryable, nodeId: string): Promise<FactReport | null> {
  const row = await factsById(db, nodeId);
  const [first] = row;
  return first === undefined ? null : columns.decode(first);
}

const factsById = preparedQuery((db, nodeId: string) =>
  db.selectFrom('agent_facts').select(['facts_json', 'reported_at']).where('node_id', '=', nodeId),
);

/** Returns what modules may read of the facts that an agent has reported. */
export async function reportedFacts(db: Queryable, nodeId: string): Promise<ReportedFacts> {
  const report = await findFacts(db, nodeId);
  if (report === null) return NOTHING;
  const { parts, own } = report.facts;
  const known = Object.entries(own).flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value]]));
  return { parts, own: Object.fromEntries(known) };
}

const NOTHING: ReportedFacts = { parts: {}, own: {} };

/** Stores the facts of an agent that has a record. */
export async function putFacts(db: Queryable, nodeId: string, report: FactReport): Promise<void> {
  const row = columns.encode(report);
  await db
    .insertInto('agent_facts')
    .values({ node_id: nodeId, ...row })
    .onConflict((conflict) => conflict.column('node_id').doUpdateSet(row))
    .execute();
}

/** What an agent reports of its own. */
interface OwnReport {
  readonly own: OwnFacts;
  readonly problem: string | null;
}

/** Returns the facts of one's own after a report: those that failed, or were not looked at, keep their last value. */
export function ownAfter(
  before: StoredFacts['own'],
  { own, problem }: OwnReport,
  { now, limit }: { readonly now: number; readonly limit: number },
): StoredFacts['own'] {
  const after: [string, StoredFact][] = [];
  for (const [name, fact] of Object.entries(own)) {
    const known = Object.hasOwn(before, name) ? before[name] : undefined;
    if (fact.error === null) after.push([name, { value: fact.value as JsonValue, error: null, since: null }]);
    else after.push([name, failed(known, fact.error, now)]);
  }
  if (problem !== null) {
    const left = Object.entries(before).filter(([name]) => !Object.hasOwn(own, name));
    for (const [name, known] of left.slice(0, Math.max(0, limit - after.length))) {
      after.push([name, failed(known, problem, now)]);
    }
  }
  return Object.fromEntries(after.sort(([a], [b]) => (a < b ? -1 : 1)));
}

const failed = (known: StoredFact | undefined, error: string, now: number): StoredFact => ({
  ...(known?.value === undefined ? {} : { value: known.value }),
  error,
  since: known?.since ?? now,
});
