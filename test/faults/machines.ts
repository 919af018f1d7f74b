/** The programs of a fleet. */

/** Agents that operators apply to. */
export const AGENTS = ['a1', 'a2'] as const;
export type AgentName = (typeof AGENTS)[number];
/** The agent whose assignment is enforced. */
export const ENFORCED = 'a3';
export const MACHINES = [...AGENTS, ENFORCED] as const;
export type MachineName = (typeof MACHINES)[number];
export type Side = 'serve' | MachineName;
