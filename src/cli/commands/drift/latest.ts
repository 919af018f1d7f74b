/** `orch drift latest`. */
import { defineCommand } from '../../define-command.js';
import { agentHandle } from '../../format.js';
import { nodeArgument } from '../../nodes/node-argument.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { operatorNames } from '../../operator-names.js';
import { lines } from '../../view.js';
import { driftDetails } from './drift-view.js';

export const command = defineCommand({
  examples: ['orch drift latest web-01'],
  access: 'viewer',
  args: { node: nodeArgument },
  run: async (context, { node }) => {
    const { signal, globals } = context;
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal });
    const name = agentHandle(agent);
    const record = await api.call('getLatestDrift', { params: { node_id: agent.node_id }, signal });
    if (record === null) {
      return { body: null, view: lines(`${name} has never been checked. Do it with: orch drift ${name}`) };
    }
    const nameOf = await operatorNames(context, api);
    return {
      body: record,
      names: [record.drift_id],
      view: driftDetails(record, { name, nameOf, verbose: globals.verbose }),
    };
  },
});
