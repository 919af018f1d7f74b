/** `orch drift NODE…`. */
import { defineCommand } from '../../define-command.js';
import { nodesArgument } from '../../nodes/node-argument.js';
import { resolveNodes } from '../../nodes/resolve-node.js';
import { flag } from '../../option.js';
import { runAgents } from '../../runs/run-agents.js';
import { runOutcome } from '../../runs/run-outcome.js';

export const command = defineCommand({
  examples: ['orch drift web-01', 'orch drift web-01 web-02 --detailed-exitcode'],
  detail: ['Compares with the last successful apply and repairs nothing: orch apply does.'],
  access: 'operator',
  args: { nodes: nodesArgument },
  options: { detailedExitcode: flag('end with 2 when something has drifted') },
  run: async (context, { nodes, detailedExitcode }) => {
    const { signal, globals } = context;
    const api = await context.api();
    const agents = await resolveNodes(api, nodes, { signal });
    const runs = await runAgents(context, {
      kind: 'drift',
      agents,
      run: (agent) => api.call('checkDrift', { params: { node_id: agent.node_id }, signal }),
    });
    return runOutcome(runs, { kind: 'drift', detailed: detailedExitcode, verbose: globals.verbose });
  },
});
