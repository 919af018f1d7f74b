/** Which modules every apply of an agent includes without being named. */
import type { Queryable } from '../database/schema.js';
import type { AgentRow } from '../fleet/agent-store.js';

/** An assignment that matches the agent. */
export interface MatchingAssignment {
  readonly name: string;
  readonly modules: readonly string[];
}

/** The assignments that match an agent, in name order. */
export type AssignedModules = (db: Queryable, agent: AgentRow) => Promise<readonly MatchingAssignment[]>;
