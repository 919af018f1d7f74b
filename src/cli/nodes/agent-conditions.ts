/** Conditions of agents that operators select by: `--status offline,behind`. */
import { AGENT_STATUSES } from '../../contract/agent-statuses.js';
import type { Agent } from '../../contract/agents.js';
import { STANDINGS } from '../../contract/standing-names.js';
import { choices } from '../options.js';

/** Statuses of the API, the connection of approved agents, and their standings. */
export const AGENT_CONDITIONS = [...AGENT_STATUSES, 'online', 'offline', ...STANDINGS] as const;
export type AgentCondition = (typeof AGENT_CONDITIONS)[number];

/** Conditions that approved agents can meet. */
export const APPROVED_CONDITIONS = ['online', 'offline', ...STANDINGS] as const;

export const conditionOption = choices('STATUS', AGENT_CONDITIONS, 'only agents in these states');
export const approvedConditionOption = choices('STATUS', APPROVED_CONDITIONS, 'only agents in these states');

/** Returns whether an agent meets any of the conditions; without conditions each agent does. */
export const meetsAny = (agent: Agent, conditions: readonly AgentCondition[]): boolean =>
  conditions.length === 0 || conditions.some((condition) => meets(agent, condition));

function meets(agent: Agent, condition: AgentCondition): boolean {
  if (condition === 'online' || condition === 'offline') {
    return agent.status === 'approved' && agent.connected === (condition === 'online');
  }
  return agent.status === condition || (agent.status === 'approved' && agent.standing === condition);
}
