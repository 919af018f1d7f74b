/** Stores assignments, caches their parsed form, and finds the agents that they match. */
import type { AssignmentMode } from '../../../src/kernel/assignment-modes.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import type { AgentLabels } from '../../../src/language/clause.js';
import { matches, parseSelector, type Selector, scopedSelector } from '../../../src/language/selector.js';
import type { Scope } from '../../core/rights.js';
import { type Decoded, jsonColumns } from '../../database/json-columns.js';
import { getMeta, setMeta } from '../../database/meta.js';
import type { NewRow, Queryable, Row } from '../../database/schema.js';
import { type AgentRow, listAgents } from '../../fleet/agent-store.js';
import { type Tags, tagsByAgent } from '../../fleet/tag-store.js';

interface AssignmentColumns {
  readonly modules: readonly string[];
  /** Values of inputs by module; null for none. */
  readonly values: InputValues | null;
  /** Machines within which it matches; null for all. */
  readonly scope: Scope;
}

/** Values of inputs by module, as they are written. */
export type InputValues = Readonly<Record<string, JsonObject>>;

const columns = jsonColumns<AssignmentColumns>({ modules: true, values: true, scope: true });

export type AssignmentRow = Decoded<Row<'assignments'>, AssignmentColumns>;
type NewAssignmentRow = Decoded<NewRow<'assignments'>, AssignmentColumns>;

/** Meta key of the revision, which changes with every change of any assignment. */
export const ASSIGNMENTS_REVISION = 'assignments.revision';

/** Sets the revision. Every transaction that changes an assignment must call it with a text that was never used before. */
export const setAssignmentsRevision = (db: Queryable, revision: string): Promise<void> =>
  setMeta(db, ASSIGNMENTS_REVISION, revision);

/** Returns all assignments, by name. */
export async function listAssignments(db: Queryable): Promise<readonly AssignmentRow[]> {
  const rows = await db.selectFrom('assignments').selectAll().orderBy('name').execute();
  return rows.map((row) => columns.decode(row));
}

export async function findAssignment(db: Queryable, name: string): Promise<AssignmentRow | null> {
  const row = await db.selectFrom('assignments').selectAll().where('name', '=', name).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

export async function insertAssignment(db: Queryable, assignment: NewAssignmentRow): Promise<void> {
  await db.insertInto('assignments').values(columns.encode(assignment)).execute();
}

/** Returns false when the assignment does not exist. */
export async function updateAssignment(
  db: Queryable,
  name: string,
  change: Pick<AssignmentRow, 'modules' | 'selector' | 'description' | 'mode' | 'values' | 'counted_from'>,
): Promise<boolean> {
  const query = db.updateTable('assignments').set(columns.encode(change)).where('name', '=', name);
  const result = await query.executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Notes that the automatic applies of an assignment stop, at the moment of the ULID. */
export async function stopAssignment(db: Queryable, name: string, stoppedId: string, reason: string): Promise<void> {
  const stop = { stopped_id: stoppedId, stopped_reason: reason };
  await db.updateTable('assignments').set(stop).where('name', '=', name).execute();
}

/** From the ULID on, failures of the assignment's automatic applies count anew; a stop before it has ended. */
export async function recountAssignment(db: Queryable, name: string, countedFrom: string): Promise<void> {
  await db.updateTable('assignments').set({ counted_from: countedFrom }).where('name', '=', name).execute();
}

/** Above every ULID, so that no recount ends a stop at it. */
const UNTIL_RESUMED = '~';

/** Stops the automatic applies of all assignments until `resumeHeldAssignment`. Returns the names of those that have a mode. */
export async function holdAssignments(tx: Queryable, reason: string, revision: string): Promise<readonly string[]> {
  const held = await tx
    .updateTable('assignments')
    .set({ stopped_id: UNTIL_RESUMED, stopped_reason: reason })
    .where('mode', '!=', 'manual')
    .returning('name')
    .execute();
  await setAssignmentsRevision(tx, revision);
  return held.map(({ name }) => name).sort();
}

/** Ends a stop that no recount ends. */
export async function resumeHeldAssignment(tx: Queryable, name: string): Promise<void> {
  const nothing = { stopped_id: null, stopped_reason: null };
  const query = tx.updateTable('assignments').set(nothing).where('name', '=', name);
  await query.where('stopped_id', '=', UNTIL_RESUMED).execute();
}

/** Returns why the automatic applies of an assignment have stopped; null while they go on. */
export const stopOf = ({
  stopped_id,
  stopped_reason,
  counted_from,
}: Pick<AssignmentRow, 'stopped_id' | 'stopped_reason' | 'counted_from'>): string | null =>
  stopped_id !== null && stopped_id > counted_from ? (stopped_reason ?? '') : null;

/** Returns false when the assignment does not exist. */
export async function deleteAssignment(db: Queryable, name: string): Promise<boolean> {
  const result = await db.deleteFrom('assignments').where('name', '=', name).executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** An assignment with its parsed selector. */
export interface CurrentAssignment extends MatchingAssignment {
  readonly selector: Selector;
  readonly mode: AssignmentMode;
  /** Values of inputs by module; null for none. */
  readonly values: InputValues | null;
  /** ULID before which failures of its automatic applies do not count. */
  readonly countedFrom: string;
  /** Why its automatic applies have stopped; null while they go on. */
  readonly stopped: string | null;
}

/** An agent, as far as it decides which assignments match it. */
interface AssignmentInputs {
  readonly row: AgentRow;
  readonly tags: Tags;
  /** Value of `ASSIGNMENTS_REVISION`; null before the first change. */
  readonly assignments: string | null;
}

interface Held {
  readonly revision: string | null;
  readonly assignments: readonly CurrentAssignment[];
}

/** Caches the parsed assignments and reads them again only after the revision changed. */
export class CurrentAssignments {
  private held: Held | null = null;

  /** Returns all assignments, by name. */
  async all(db: Queryable): Promise<readonly CurrentAssignment[]> {
    return this.at(db, await getMeta(db, ASSIGNMENTS_REVISION));
  }

  /** Returns the assignments that match an agent, by name. Does not check that the agent is approved; callers do. */
  async matching(db: Queryable, { row, tags, assignments }: AssignmentInputs): Promise<readonly CurrentAssignment[]> {
    const all = await this.at(db, assignments);
    const labels = labelsOf(row, tags);
    return all.filter(({ selector }) => matches(selector, labels));
  }

  /** Returns the assignments that match an approved agent with these labels, by name. */
  async of(db: Queryable, labels: AgentLabels): Promise<readonly CurrentAssignment[]> {
    return (await this.all(db)).filter(({ selector }) => matches(selector, labels));
  }

  private async at(db: Queryable, revision: string | null): Promise<readonly CurrentAssignment[]> {
    if (this.held?.revision === revision) return this.held.assignments;
    const assignments = (await listAssignments(db)).map(
      (row): CurrentAssignment => ({
        name: row.name,
        modules: row.modules,
        selector: selectorOf(row),
        mode: row.mode,
        values: row.values,
        countedFrom: row.counted_from,
        stopped: stopOf(row),
      }),
    );
    this.held = { revision, assignments };
    return assignments;
  }
}

/** Returns what an assignment matches: its selector, within the machines on which its maker could apply. */
export const selectorOf = ({ selector, scope }: Pick<AssignmentRow, 'selector' | 'scope'>): Selector =>
  scopedSelector(selector, scope);

/** Returns the approved agents that a selector matches, by name. */
export async function selectedAgents(db: Queryable, selector: Selector): Promise<readonly AgentRow[]> {
  const agents = await listAgents(db, { status: 'approved' });
  if (selector.terms.length === 0 && selector.within === undefined) return agents;
  const tags = await tagsByAgent(db);
  return agents.filter((agent) => matches(selector, labelsOf(agent, tags.get(agent.node_id) ?? {})));
}

/** Returns the node IDs of the approved agents that a selector matches. Throws `invalid_selector`. */
export const selectedNodeIds = async (db: Queryable, selector: string): Promise<readonly string[]> =>
  (await selectedAgents(db, parseSelector(selector))).map(({ node_id }) => node_id);

export const labelsOf = ({ attributes, node_id }: AgentRow, tags: AgentLabels['tags']): AgentLabels => ({
  attributes,
  tags,
  nodeId: node_id,
});

/** Name and modules of an assignment that matches an agent. */
interface MatchingAssignment {
  readonly name: string;
  readonly modules: readonly string[];
}
