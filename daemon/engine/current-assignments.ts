/** The assignments as they are now, read anew only after a change, and which agents they match. */
import type { AgentLabels } from '../../src/language/clause.js';
import { matches, parseSelector, type Selector } from '../../src/language/selector.js';
import type { Queryable } from '../database/schema.js';
import { type AgentRow, listAgents } from '../fleet/agent-store.js';
import { tagsByAgent, tagsOf } from '../fleet/tag-store.js';
import type { MatchingAssignment } from './assigned-modules.js';
import { assignmentsRevision, listAssignments } from './assignment-store.js';

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

export const labelsOf = (
  { attributes_json }: Pick<AgentRow, 'attributes_json'>,
  tags: AgentLabels['tags'],
): AgentLabels => ({ attributes: JSON.parse(attributes_json), tags });
