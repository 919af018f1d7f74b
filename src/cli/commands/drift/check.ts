/** `orch drift NODE…`. */
import { defineCommand } from '../../define-command.js';
import { localChoice, localOptions } from '../../local/local-options.js';
import { chooseAgents, fleetFlags, fleetOptions, requireOneChoice } from '../../nodes/choose-agents.js';
import { optionalNodesArgument } from '../../nodes/node-argument.js';
import { flag, list } from '../../option.js';
import { paceOptions } from '../../runs/pace.js';
import { runAgents } from '../../runs/run-agents.js';
import { runOutcome } from '../../runs/run-outcome.js';

export const command = defineCommand({
  examples: [
    'orch drift web-01',
    'orch drift web-01 web-02 --detailed-exitcode',
    'orch drift --assignment web',
    'orch drift -l "*"',
    'orch drift --local',
  ],
  detail: [
    'Compares with the last successful apply and repairs nothing: orch apply does.',
    '--local compares this machine with what orch apply --local has put there.',
  ],
  access: 'operator',
  args: { nodes: optionalNodesArgument },
  options: {
    ...fleetOptions,
    concurrency: paceOptions.concurrency,
    ...localOptions,
    file: list('FILE', 'with --local: module files, for what holds secrets', { short: 'f', completes: 'file' }),
    detailedExitcode: flag('end with 2 when something has drifted'),
  },
  run: async (context, { detailedExitcode, concurrency, ...choice }) => {
    const here = localChoice({ ...choice, others: fleetFlags(choice), filesAreLocal: true });
    if (here !== null) {
      return (await import('../../local/drift-local.js')).driftLocal(context, here, detailedExitcode);
    }
    requireOneChoice(choice, 'drift');
    const { signal, globals } = context;
    const api = await context.api();
    const agents = await chooseAgents(api, choice, context);
    const fleet = choice.nodes.length === 0;
    const runs = await runAgents(context, {
      kind: 'drift',
      agents,
      pace: { concurrency },
      fleet,
      run: (agent) => api.call('checkDrift', { params: { node_id: agent.node_id }, signal }),
    });
    return runOutcome(runs, { kind: 'drift', detailed: detailedExitcode, verbose: globals.verbose, fleet });
  },
});
