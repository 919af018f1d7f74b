/** Assignments. Rows as they are stored: `modules_json` is for the caller to parse. */
import type { Updateable } from 'kysely';
import type { AgentLabels } from '../../../src/language/clause.js';
import { matches, parseSelector, type Selector } from '../../../src/language/selector.js';
import { getMeta, setMeta } from '../../database/meta.js';
import type { AssignmentTable, NewRow, Queryable, Row } from '../../database/schema.js';
import { type AgentRow, listAgents } from '../../fleet/agent-store.js';
import { tagsByAgent, tagsOf } from '../../fleet/tag-store.js';

export type AssignmentRow = Row<'assignments'>;

/** Where the store keeps what changes with every change of any assignment. */
const REVISION = 'assignments.revision';

/** Another text after each change; null while there was none. */
const assignmentsRevision = (db: Queryable): Promise<string | null> => getMeta(db, REVISION);

/** To be called in the transaction of every change, with a text that was never given before. */
export const setAssignmentsRevision = (db: Queryable, revision: string): Promise<void> =>
  setMeta(db, REVISION, revision);

/** By name. */
export async function listAssignments(db: Queryable): Promise<readonly AssignmentRow[]> {
  return db.selectFrom('assignments').selectAll().orderBy('name').execute();
}

export async function findAssignment(db: Queryable, name: string): Promise<AssignmentRow | null> {
  return (await db.selectFrom('assignments').selectAll().where('name', '=', name).executeTakeFirst()) ?? null;
}

export async function insertAssignment(db: Queryable, assignment: NewRow<'assignments'>): Promise<void> {
  await db.insertInto('assignments').values(assignment).execute();
}

/** False when there is no such assignment. */
export async function updateAssignment(
  db: Queryable,
  name: string,
  change: Pick<Updateable<AssignmentTable>, 'modules_json' | 'selector' | 'description'>,
): Promise<boolean> {
  const result = await db.updateTable('assignments').set(change).where('name', '=', name).executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** False when there is no such assignment. */
export async function deleteAssignment(db: Queryable, name: string): Promise<boolean> {
  const result = await db.deleteFrom('assignments').where('name', '=', name).executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** The assignments as they are now, read anew only after a change, and which agents they match. */
export interface CurrentAssignment extends MatchingAssignment {
  readonly selector: Selector;
}

interface Held {
  readonly revision: string | null;
  readonly assignments: readonly CurrentAssignment[];
}

export class CurrentAssignments {
  private held: Held | null = null;

  /** By name. */
  async all(db: Queryable): Promise<readonly CurrentAssignment[]> {
    const revision = await assignmentsRevision(db);
    if (this.held?.revision === revision) return this.held.assignments;
    const assignments = (await listAssignments(db)).map(
      ({ name, modules_json, selector }): CurrentAssignment => ({
        name,
        modules: JSON.parse(modules_json),
        selector: parseSelector(selector),
      }),
    );
    this.held = { revision, assignments };
    return assignments;
  }

  /** Those that match an agent, by name. Whether it is approved is for whoever starts something on it to ask. */
  async matching(db: Queryable, agent: AgentRow): Promise<readonly CurrentAssignment[]> {
    const all = await this.all(db);
    if (all.length === 0) return all;
    const labels = labelsOf(agent, await tagsOf(db, agent.node_id));
    return all.filter(({ selector }) => matches(selector, labels));
  }
}

/** The approved agents that a selector matches, by name. */
export async function selectedAgents(db: Queryable, selector: Selector): Promise<readonly AgentRow[]> {
  const agents = await listAgents(db, { status: 'approved' });
  if (selector.terms.length === 0) return agents;
  const tags = await tagsByAgent(db);
  return agents.filter((agent) => matches(selector, labelsOf(agent, tags.get(agent.node_id) ?? {})));
}

const labelsOf = ({ attributes_json }: Pick<AgentRow, 'attributes_json'>, tags: AgentLabels['tags']): AgentLabels => ({
  attributes: JSON.parse(attributes_json),
  tags,
});

/** An assignment that matches the agent. */
interface MatchingAssignment {
  readonly name: string;
  readonly modules: readonly string[];
}

/** The assignments that match an agent, in name order. */
export type AssignedModules = (db: Queryable, agent: AgentRow) => Promise<readonly MatchingAssignment[]>;
