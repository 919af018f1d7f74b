/** `orch agents untag`. */
import { argumentList } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { nodeArgument } from '../../nodes/node-argument.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { taggedOutcome } from './tagged-outcome.js';

export const command = defineCommand({
  examples: ['orch agents untag web-01 canary'],
  access: 'operator',
  args: { node: nodeArgument, keys: argumentList('KEY', 'keys of the tags to take off') },
  run: async (context, { node, keys }) => {
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal: context.signal });
    const params = { node_id: agent.node_id };
    for (const key of new Set(keys)) {
      await api.call('removeTag', { params: { ...params, key }, signal: context.signal });
    }
    return taggedOutcome(await api.call('getAgent', { params, signal: context.signal }));
  },
});
