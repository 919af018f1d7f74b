/** What a change of tags gives: the agent as it is now. */
import type { Agent } from '../../../contract/agents.js';
import { agentHandle, agentName, formatTags } from '../../format.js';
import type { Outcome } from '../../outcome.js';
import { lines } from '../../view.js';

export function taggedOutcome(agent: Agent): Outcome {
  const tags = formatTags(agent.tags);
  const told = tags === '' ? `${agentName(agent)} has no tags now.` : `${agentName(agent)} has the tags: ${tags}`;
  return { body: agent, names: [agentHandle(agent)], view: lines(told) };
}
