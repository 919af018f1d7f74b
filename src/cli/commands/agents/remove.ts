/** `orch agents remove`. */
import { defineCommand } from '../../define-command.js';
import { agentHandle, agentName } from '../../format.js';
import { nodeArgument } from '../../nodes/node-argument.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { lines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch agents remove web-01'],
  detail: ['Removes what the orchestrator knows of a rejected agent. Reject it first: orch agents reject NODE'],
  access: 'operator',
  consent: true,
  args: { node: nodeArgument },
  run: async (context, { node }) => {
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal: context.signal });
    await context.prompt.consent(`Remove the record of ${agentName(agent)} (${agent.status}, ${agent.node_id})?`);
    await api.call('removeAgent', { params: { node_id: agent.node_id }, signal: context.signal });
    return { names: [agentHandle(agent)], view: lines(`Removed ${agentName(agent)}.`) };
  },
});
