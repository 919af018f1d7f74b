/** `orch apply`. */
import { defineCommand } from '../define-command.js';
import { moduleOptions, modulesFor } from '../modules/upload.js';
import { nodesArgument } from '../nodes/node-argument.js';
import { resolveNodes } from '../nodes/resolve-node.js';
import { flag, integer } from '../option.js';
import { applyAgents } from '../runs/apply-agents.js';
import { confirmApply, requireConsent } from '../runs/confirm-apply.js';
import { runOutcome } from '../runs/run-outcome.js';

export const command = defineCommand({
  examples: ['orch apply web-01 -f site.orch.yaml', 'orch apply web-01 web-02 -m nginx --yes'],
  detail: [
    'On a terminal it plans, shows the plan, asks, and applies only what the plan showed. With --yes it applies at once.',
    '--yes does not cover more removals than the removal guard of the orchestrator lets through: --allow-removals N does.',
    'Ctrl-C leaves the operation running and tells how to watch and how to cancel it; Ctrl-C twice cancels it.',
    'Files of -f are uploaded first, then the modules of -m count before those of -f.',
  ],
  access: 'operator',
  consent: true,
  args: { nodes: nodesArgument },
  options: {
    ...moduleOptions,
    allowRemovals: integer('N', 'let up to N resources be removed on each agent, past the removal guard'),
    detailedExitcode: flag('end with 2 when something changed'),
  },
  run: async (context, { nodes, allowRemovals, detailedExitcode, ...choice }) => {
    requireConsent(context);
    const api = await context.api();
    const agents = await resolveNodes(api, nodes, { signal: context.signal });
    const modules = await modulesFor(context, api, choice);
    const { targets, missed } = await confirmApply(context, api, { agents, modules });
    const runs = await applyAgents(context, api, { targets, modules, allowRemovals: allowRemovals ?? null });
    const { verbose } = context.globals;
    return runOutcome([...runs, ...missed], { kind: 'apply', detailed: detailedExitcode, verbose });
  },
});
