/** Which modules every apply of an agent includes without being named. */
import type { AgentRow } from '../store/agents.js';
import type { Queryable } from '../store/queryable.js';

/** An assignment that matches the agent. */
export interface MatchingAssignment {
  readonly name: string;
  readonly modules: readonly string[];
}

/** The assignments that match an agent, in name order. */
export type AssignedModules = (db: Queryable, agent: AgentRow) => Promise<readonly MatchingAssignment[]>;
