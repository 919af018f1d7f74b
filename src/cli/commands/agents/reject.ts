/** `orch agents reject`. */
import { defineCommand } from '../../define-command.js';
import { agentHandle, agentName } from '../../format.js';
import { nodeArgument } from '../../nodes/node-argument.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { lines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch agents reject web-01'],
  detail: [
    'An approved agent is revoked: its connection and its terminals close at once. What it manages stays as it is.',
  ],
  access: 'operator',
  consent: true,
  args: { node: nodeArgument },
  run: async (context, { node }) => {
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal: context.signal });
    await context.prompt.consent(`Reject ${agentName(agent)} (${agent.status}, ${agent.node_id})?`);
    const rejected = await api.call('setAgentStatus', {
      params: { node_id: agent.node_id },
      body: { status: 'rejected' },
      signal: context.signal,
    });
    return { body: rejected, names: [agentHandle(rejected)], view: lines(`Rejected ${agentName(rejected)}.`) };
  },
});
