/** `orch plan`. */
import { defineCommand } from '../define-command.js';
import { moduleOptions, modulesFor } from '../modules/upload.js';
import { nodesArgument } from '../nodes/node-argument.js';
import { resolveNodes } from '../nodes/resolve-node.js';
import { flag } from '../option.js';
import { planAgents } from '../runs/run-agents.js';
import { runOutcome } from '../runs/run-outcome.js';

export const command = defineCommand({
  examples: ['orch plan web-01 -f site.orch.yaml', 'orch plan web-01 web-02 -m nginx -m motd'],
  detail: [
    'Writes nothing on the agents (checks of scripts run). Files of -f are uploaded first, then the modules of -m count',
    'before those of -f.',
    'Signs: + create, ~ update, - remove, = release (left as it is, no longer managed), ! script, > restart or reload.',
  ],
  access: 'operator',
  args: { nodes: nodesArgument },
  options: { ...moduleOptions, detailedExitcode: flag('end with 2 when something would change') },
  run: async (context, { nodes, detailedExitcode, ...choice }) => {
    const api = await context.api();
    const agents = await resolveNodes(api, nodes, { signal: context.signal });
    const modules = await modulesFor(context, api, choice);
    const runs = await planAgents(context, api, { agents, modules });
    return runOutcome(runs, { kind: 'plan', detailed: detailedExitcode, verbose: context.globals.verbose });
  },
});
