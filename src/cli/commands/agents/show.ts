/** `orch agents show`. */
import { defineCommand } from '../../define-command.js';
import { agentHandle } from '../../format.js';
import { nodeArgument } from '../../nodes/node-argument.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { agentDetails } from './agent-view.js';

export const command = defineCommand({
  examples: ['orch agents show web-01'],
  access: 'viewer',
  args: { node: nodeArgument },
  run: async (context, { node }) => {
    const agent = await resolveNode(await context.api(), node, { signal: context.signal });
    return { body: agent, names: [agentHandle(agent)], view: agentDetails(agent) };
  },
});
