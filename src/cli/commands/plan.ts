/** `orch plan`: shows what an apply would change, on agents or on this machine. */
import { defineCommand, flag, text } from '../define-command.js';
import { localChoice, localOptions } from '../local/local-options.js';
import { chooseModules, moduleOptions } from '../modules/send-modules.js';
import { chooseTarget, fleetFlags, fleetOptions, requireOneChoice } from '../nodes/choose-agents.js';
import { optionalNodesArgument } from '../nodes/resolve-node.js';
import { planAgent } from '../runs/one-agent.js';
import { paceOptions, planFleet } from '../runs/rollout.js';
import { runOutcome } from '../runs/run-view.js';
import { requirePlanName, savePlan } from '../runs/saved-plan.js';

export const command = defineCommand({
  examples: [
    'orch plan web-01 -f site.orch.yaml',
    'orch plan web-01 web-02 -m nginx -m motd',
    'orch plan --assignment web',
    'orch plan --selector "role=web,env=prod" -m nginx',
    'orch plan web-01 -m nginx --out next.orchplan',
    'orch plan --local -f site.orch.yaml --tag role=web',
  ],
  detail: [
    'Changes nothing on the agents, but runs the checks of scripts. Files of -f are sent with the plan and not stored: they',
    'replace uploaded modules of the same names for this plan only. The modules of -m come before those of -f.',
    '--out saves the plan: orch apply FILE.orchplan does exactly what it shows, and is rejected by changed agents.',
    '--local needs no orchestrator: it resolves and plans on this machine, with the given tags and secrets.',
    'Signs: + create, ~ update, - remove, = release (left as it is, no longer managed), ! script, > restart or reload.',
  ],
  access: 'operator',
  args: { nodes: optionalNodesArgument },
  options: {
    ...moduleOptions,
    ...fleetOptions,
    ...paceOptions,
    ...localOptions,
    out: text('FILE', 'save the plan to a file that ends in .orchplan, for orch apply', { completes: 'file' }),
    detailedExitcode: flag('end with 2 if the plan has changes'),
  },
  run: async (context, { out, detailedExitcode, concurrency, canary, maxFailures, ...choice }) => {
    const others = { '--out': out !== undefined, ...fleetFlags(choice), '-m': choice.module.length > 0 };
    const here = localChoice({ ...choice, others });
    if (here !== null) return (await import('../local/run-local.js')).planLocal(context, here, detailedExitcode);
    requireOneChoice(choice, 'plan');
    if (out !== undefined) requirePlanName(out);
    const modules = chooseModules(context, choice);
    const api = await context.api();
    const detailed = detailedExitcode;
    const target = await chooseTarget(api, choice, context);
    if (target.kind === 'agent') {
      const runs = [await planAgent(context, api, { agent: target.agent, modules })];
      if (out !== undefined) await savePlan(context, api, { path: out, modules, runs });
      return runOutcome(runs, { kind: 'plan', detailed, verbose: context.globals.verbose });
    }
    const pace = { concurrency, canary, maxFailures };
    const order = { fleet: target, modules, pace, allowEmpty: choice.allowEmpty, detailed };
    const { outcome, runs } = await planFleet(context, api, order);
    if (out !== undefined) await savePlan(context, api, { path: out, modules, runs });
    return outcome;
  },
});
