/** Stores assignments, caches their parsed form, and finds the agents that they match. */
import type { Updateable } from 'kysely';
import type { AgentLabels } from '../../../src/language/clause.js';
import { matches, parseSelector, type Selector } from '../../../src/language/selector.js';
import { getMeta, setMeta } from '../../database/meta.js';
import type { AssignmentTable, NewRow, Queryable, Row } from '../../database/schema.js';
import { type AgentRow, listAgents } from '../../fleet/agent-store.js';
import { tagsByAgent, tagsOf } from '../../fleet/tag-store.js';

export type AssignmentRow = Row<'assignments'>;

/** Meta key of the revision, which changes with every change of any assignment. */
const REVISION = 'assignments.revision';

/** Returns the current revision; null before the first change. */
const assignmentsRevision = (db: Queryable): Promise<string | null> => getMeta(db, REVISION);

/** Sets the revision. Every transaction that changes an assignment must call it with a text that was never used before. */
export const setAssignmentsRevision = (db: Queryable, revision: string): Promise<void> =>
  setMeta(db, REVISION, revision);

/** Returns all assignments, by name. Callers parse `modules_json` themselves. */
export async function listAssignments(db: Queryable): Promise<readonly AssignmentRow[]> {
  return db.selectFrom('assignments').selectAll().orderBy('name').execute();
}

export async function findAssignment(db: Queryable, name: string): Promise<AssignmentRow | null> {
  return (await db.selectFrom('assignments').selectAll().where('name', '=', name).executeTakeFirst()) ?? null;
}

export async function insertAssignment(db: Queryable, assignment: NewRow<'assignments'>): Promise<void> {
  await db.insertInto('assignments').values(assignment).execute();
}

/** Returns false when the assignment does not exist. */
export async function updateAssignment(
  db: Queryable,
  name: string,
  change: Pick<Updateable<AssignmentTable>, 'modules_json' | 'selector' | 'description'>,
): Promise<boolean> {
  const result = await db.updateTable('assignments').set(change).where('name', '=', name).executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Returns false when the assignment does not exist. */
export async function deleteAssignment(db: Queryable, name: string): Promise<boolean> {
  const result = await db.deleteFrom('assignments').where('name', '=', name).executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** An assignment with its parsed selector. */
export interface CurrentAssignment extends MatchingAssignment {
  readonly selector: Selector;
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

  /** Returns the assignments that match an agent, by name. Does not check that the agent is approved; callers do. */
  async matching(db: Queryable, agent: AgentRow): Promise<readonly CurrentAssignment[]> {
    const all = await this.all(db);
    if (all.length === 0) return all;
    const labels = labelsOf(agent, await tagsOf(db, agent.node_id));
    return all.filter(({ selector }) => matches(selector, labels));
  }
}

/** Returns the approved agents that a selector matches, by name. */
export async function selectedAgents(db: Queryable, selector: Selector): Promise<readonly AgentRow[]> {
  const agents = await listAgents(db, { status: 'approved' });
  if (selector.terms.length === 0) return agents;
  const tags = await tagsByAgent(db);
  return agents.filter((agent) => matches(selector, labelsOf(agent, tags.get(agent.node_id) ?? {})));
}

const labelsOf = ({ attributes }: AgentRow, tags: AgentLabels['tags']): AgentLabels => ({ attributes, tags });

/** Name and modules of an assignment that matches an agent. */
interface MatchingAssignment {
  readonly name: string;
  readonly modules: readonly string[];
}

/** Returns the assignments that match an agent, by name. */
export type AssignedModules = (db: Queryable, agent: AgentRow) => Promise<readonly MatchingAssignment[]>;
