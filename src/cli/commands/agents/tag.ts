/** `orch agents tag`. */
import { argumentList } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { nodeArgument } from '../../nodes/node-argument.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { parseTag } from '../../parse-tag.js';
import { taggedOutcome } from './tagged-outcome.js';

export const command = defineCommand({
  examples: ['orch agents tag web-01 role=web env=prod', 'orch agents tag web-01 canary'],
  access: 'operator',
  args: {
    node: nodeArgument,
    tags: argumentList('KEY[=VALUE]', 'tags to put on; one that is there gets the new value'),
  },
  run: async (context, { node, tags }) => {
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal: context.signal });
    const params = { node_id: agent.node_id };
    for (const [key, value] of new Map(tags.map(parseTag))) {
      await api.call('setTag', { params: { ...params, key }, body: { value }, signal: context.signal });
    }
    return taggedOutcome(await api.call('getAgent', { params, signal: context.signal }));
  },
});
