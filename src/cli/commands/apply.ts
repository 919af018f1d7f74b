/** `orch plan` and `orch apply`: modules on agents or on this machine, and saved plans. */
import { Fault } from '../../kernel/fault.js';
import { isUlid } from '../../kernel/ids.js';
import type { Context } from '../context.js';
import { defineCommand } from '../define-command.js';
import { localChoice, localOptions } from '../local/local-options.js';
import { type OneOffChoice, oneOffOptions } from '../modules/one-off-values.js';
import { ALLOW_AUTOMATIC, allowAutomaticOption } from '../modules/reach.js';
import { chooseModules, type ModuleChoice, moduleOptions } from '../modules/send-modules.js';
import { chooseTarget, fleetFlags, fleetOptions, requireOneChoice } from '../nodes/choose-agents.js';
import { optionalNodesArgument } from '../nodes/resolve-node.js';
import { flag, type Option, text } from '../options.js';
import type { Outcome } from '../outcome.js';
import { confirmSecsOf, limitOptions, limitsOf } from '../runs/apply-limits.js';
import { requireConsent } from '../runs/consent.js';
import { confirmAndApply, confirmAndDetach, planAgent } from '../runs/one-agent.js';
import { applyPaceOptions, choosePace, needsRollout, paceFlags, planPaceOptions } from '../runs/pace.js';
import { publishAfter, requirePublishable } from '../runs/publish-after.js';
import { applyFleet, planFleet } from '../runs/rollout.js';
import { runOutcome, withLines } from '../runs/run-view.js';
import { applyPlan, isPlanFile, requirePlanName, savePlan } from '../runs/saved-plan.js';
import { waitOption, waitSecsOf } from '../runs/when-free.js';
import { requireFile } from '../text-files.js';

const operationOption: Option<string | undefined> = {
  ...text('OPERATION', 'bring back the desired state of an earlier operation', {
    completes: 'operation-of-node',
  }),
  parse: (given, name) => {
    const id = given.at(-1);
    if (id === undefined || isUlid(id)) return id;
    throw new Fault('usage', `${name} takes the ID of an operation, not "${id}"`, {
      hint: 'see the operations of an agent: orch ops list --agent NODE',
    });
  },
};

/** `orch apply`: applies modules to agents, a saved plan, or modules to this machine. */
export const applyModules = defineCommand({
  examples: [
    'orch apply web-01 -f site.orch.yaml',
    'orch apply web-01 -f site.orch.yaml --publish',
    'orch apply web-01 web-02 -m nginx --yes',
    'orch apply --assignment web --canary 1 --max-failures 3',
    'orch apply --assignment web --waves 1,10%,100% --soak 5m --yes',
    'orch apply --selector role=web -m nginx --yes',
    'orch apply --status behind,drifted --canary 1',
    'orch apply web-01 --set nginx:workers=8',
    'orch apply web-01 -m firewall --confirm-within 90s',
    'orch apply next.orchplan',
    'orch apply web-01 --to 01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
    'orch apply --local -f site.orch.yaml',
  ],
  detail: [
    'On a terminal it shows a plan, asks, and applies exactly that plan. With --yes it applies at once, under the',
    'removal guard.',
    'A FILE.orchplan of orch plan --out is applied exactly as shown; an agent that has changed since rejects it (exit',
    'status 6).',
    '--local needs no orchestrator: it applies to this machine, and later removes what is no longer declared. There,',
    'Ctrl-C, SIGTERM and SIGHUP stop at the next resource.',
    'With --confirm-within the agent restores what the apply replaced, unless the apply succeeds and the agent comes',
    'back on a new connection in that time; orch then ends with 7. A module can ask for it with "confirm: 90s".',
    'Over several agents it begins a rollout, which goes on without you and survives a restart of the orchestrator:',
    'see orch rollouts. It ends with 3 if the rollout halts, is cancelled or is reverted, and with 5 if the only',
    'failures are offline agents.',
    'Ctrl-C leaves the operation or the rollout running and shows how to watch and cancel it; Ctrl-C twice cancels',
    'it, SIGTERM never.',
    'If no other machine follows the module of a file of -f, the file is published with the apply, as its new',
    'revision. Otherwise the machines are on trial, and automatic applies leave them alone, until it is published',
    '(orch module publish --from NODE, or --publish here), or until an apply without it. A saved plan holds its',
    'files. The modules of -m come before those of -f.',
    '--wait is about one named agent; a rollout waits for busy agents by itself, for at most ten minutes each.',
    '--to uses the present values of secrets. The next apply without --to brings the assigned modules back.',
    'After --set or --values the machine is behind, and automatic applies leave it alone until an apply without them.',
    'Secret inputs are refused.',
  ],
  access: 'operator',
  consent: true,
  args: { nodes: optionalNodesArgument },
  options: {
    ...moduleOptions,
    ...oneOffOptions,
    ...fleetOptions,
    ...applyPaceOptions,
    ...localOptions,
    to: operationOption,
    ...limitOptions,
    wait: waitOption,
    publish: flag('publish the modules of -f once the apply has succeeded'),
    allowAutomaticApplies: allowAutomaticOption,
    detailedExitcode: flag('end with 2 if resources changed'),
  },
  run: async (context, { detailedExitcode: detailed, detach, to, wait, ...given }) => {
    const { publish, allowAutomaticApplies: isAllowed, ...choice } = given;
    refusePublishing({ publish, isAllowed, detach, file: choice.file });
    const waitSecs = waitSecsOf(wait);
    const { nodes, allowEmpty } = choice;
    const limits = limitsOf(choice);
    refuseBeside(to, { ...choice, detach });
    const named = { ...fleetFlags(choice), ...paceFlags({ ...choice, detach }), '-m': choice.module.length > 0 };
    const others = {
      '--confirm-within': limits.confirmSecs !== null,
      '--outside-window': limits.outsideWindow,
      '--wait': waitSecs !== null,
      '--publish': publish,
      ...named,
    };
    const here = localChoice({ ...choice, others });
    if (here === null) requireOneChoice(choice, 'apply');
    const path = here === null && nodes.some(isPlanFile) ? onlyPlanFile(nodes, choice) : null;
    // Consent comes last: what is wrong with the words or missing on disk does not get right by it.
    for (const file of [...choice.file, ...choice.values, ...(path === null ? [] : [path])]) requireFile(file);
    requireConsent(context);
    if (here !== null) {
      const { applyLocal } = await import('../local/run-local.js');
      return applyLocal(context, { ...here, allowRemovals: limits.allowRemovals, detailed });
    }
    const pace = choosePace(choice);
    const api = await context.api();
    if (path !== null) {
      return applyPlan(context, api, { path, pace, limits, detach, detailed });
    }
    const modules = await chooseModules(context, choice);
    const target = await chooseTarget(api, choice, context);
    if (isEmpty(target)) return nothingChosen(context, { kind: 'apply', detailed });
    const publishing = publish ? { files: modules.files, isAllowed } : null;
    if (publishing !== null) await requirePublishable(context, api, publishing);
    if (target.kind !== 'agent' || needsRollout(pace)) {
      const fleet = target.kind === 'agent' ? ({ kind: 'agents', agents: [target.agent] } as const) : target;
      const order = { fleet, modules, pace, allowEmpty, limits, detach, detailed };
      return publishAfter(context, api, await applyFleet(context, api, order), publishing);
    }
    const order = { agent: target.agent, modules, to: to ?? null, waitSecs, limits };
    if (detach) return confirmAndDetach(context, api, order);
    const { run, lines } = await confirmAndApply(context, api, order);
    const outcome = runOutcome([run], { kind: 'apply', detailed, verbose: context.globals.verbose });
    return publishAfter(context, api, withLines(outcome, publish ? [] : lines), publishing);
  },
});

/** Throws `usage` for `--publish` without a file or without waiting for the end, and for its consent without it. */
function refusePublishing({ publish, isAllowed, detach, file }: Publishing): void {
  if (isAllowed && !publish) {
    throw new Fault('usage', `${ALLOW_AUTOMATIC} is the consent to --publish, and --publish is missing`, {
      hint: 'an apply of a file concerns its own machines, and needs no such consent',
    });
  }
  if (!publish) return;
  if (file.length === 0) {
    throw new Fault('usage', '--publish publishes the files of -f, and there are none', {
      hint: 'publish what a machine has on trial: orch module publish --from NODE',
    });
  }
  if (detach) {
    throw new Fault('usage', '--publish waits for the end of the apply, and --detach does not', {
      hint: 'publish afterwards: orch module publish --from NODE',
    });
  }
}

interface Publishing {
  readonly publish: boolean;
  readonly isAllowed: boolean;
  readonly detach: boolean;
  readonly file: readonly string[];
}

const isEmpty = (target: Awaited<ReturnType<typeof chooseTarget>>): boolean =>
  target.kind === 'agents' && target.agents.length === 0;

/** The outcome with `--allow-empty` if no agent has the status. */
const nothingChosen = (
  { globals }: Context,
  options: { readonly kind: 'plan' | 'apply'; readonly detailed: boolean },
): Outcome => runOutcome([], { ...options, verbose: globals.verbose, fleet: true });

/** Options that name many agents or modules. */
type Beside = Parameters<typeof fleetFlags>[0] &
  Parameters<typeof paceFlags>[0] &
  ModuleChoice &
  OneOffChoice & {
    readonly nodes: readonly string[];
    readonly local: boolean;
  };

/** Throws `usage` for `--to` beside modules, a saved plan or anything but one named agent. */
function refuseBeside(to: string | undefined, beside: Beside): void {
  if (to === undefined) return;
  const { nodes, module, file, values, set, local } = beside;
  const { '--detach': _, ...pace } = paceFlags(beside);
  const own = { '--values': values.length > 0, '--set': set.length > 0 };
  const named = { '-m': module.length > 0, '-f': file.length > 0, ...own, '--local': local };
  const flags = { ...named, ...fleetFlags(beside), ...pace };
  const [other] = Object.entries(flags).flatMap(([name, isGiven]) => (isGiven ? [name] : []));
  // Without an agent, the general check of the command names what is missing.
  if (other === undefined && nodes.length <= 1 && !nodes.some(isPlanFile)) return;
  const what = other ?? (nodes.some(isPlanFile) ? 'a saved plan' : 'several agents');
  throw new Fault('usage', `--to excludes ${what}: it goes back to an operation of one named agent`, {
    hint: 'orch apply NODE --to OPERATION; see its operations: orch ops list --agent NODE',
  });
}

/** Returns the path of a saved plan. Throws `usage` if anything else is named beside it. */
function onlyPlanFile(nodes: readonly string[], { module, file, values, set }: ModuleChoice & OneOffChoice): string {
  const [path] = nodes;
  const given = [module, file, values, set].some((words) => words.length > 0);
  if (path !== undefined && nodes.length === 1 && !given) return path;
  throw new Fault('usage', 'a saved plan names its agents, modules and values itself, so it stands alone', {
    hint: 'orch apply FILE.orchplan',
  });
}

/** `orch plan`: shows what an apply would change, on agents or on this machine. */
export const planModules = defineCommand({
  examples: [
    'orch plan web-01 -f site.orch.yaml',
    'orch plan web-01 web-02 -m nginx -m motd',
    'orch plan --assignment web',
    'orch plan --selector "role=web,env=prod" -m nginx',
    'orch plan web-01 --set nginx:workers=8 --values trial.values.yaml',
    'orch plan web-01 -m nginx --out next.orchplan',
    'orch plan web-01 --to 01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
    'orch plan --local -f site.orch.yaml --tag role=web',
  ],
  detail: [
    'Changes nothing on the agents, but runs the checks of scripts. Files of -f are not stored: they replace uploaded',
    'modules of the same names for this plan only. The modules of -m come before those of -f.',
    'orch apply FILE.orchplan does exactly what a plan saved with --out shows, with its --set and --values, and is',
    'rejected by changed agents.',
    'Signs: + create, ~ update, - remove, = release (left as it is, no longer managed), ! script, > restart or',
    'reload.',
  ],
  access: 'operator',
  args: { nodes: optionalNodesArgument },
  options: {
    ...moduleOptions,
    ...oneOffOptions,
    ...fleetOptions,
    ...planPaceOptions,
    ...localOptions,
    to: operationOption,
    wait: waitOption,
    out: text('FILE', 'save the plan to a file that ends in .orchplan, for orch apply', { completes: 'file' }),
    confirmWithin: text('TIME', 'show which changes apply --confirm-within could not undo'),
    detailedExitcode: flag('end with 2 if the plan has changes'),
  },
  run: async (context, { out, detailedExitcode, concurrency, canary, maxFailures, to, wait, ...choice }) => {
    const waitSecs = waitSecsOf(wait);
    refuseBeside(to, { ...choice, concurrency, canary, maxFailures });
    const pace = { concurrency, canary, maxFailures };
    const named = { ...fleetFlags(choice), ...paceFlags(pace), '-m': choice.module.length > 0 };
    const confirmSecs = confirmSecsOf(choice.confirmWithin);
    const others = {
      '--confirm-within': confirmSecs !== null,
      '--out': out !== undefined,
      '--wait': waitSecs !== null,
      ...named,
    };
    const here = localChoice({ ...choice, others });
    if (here !== null) return (await import('../local/run-local.js')).planLocal(context, here, detailedExitcode);
    requireOneChoice(choice, 'plan');
    if (out !== undefined) requirePlanName(out);
    const modules = await chooseModules(context, choice);
    const api = await context.api();
    const detailed = detailedExitcode;
    const target = await chooseTarget(api, choice, context);
    if (target.kind === 'agent') {
      const run = await planAgent(context, api, { agent: target.agent, modules, to: to ?? null, waitSecs });
      const runs = [run];
      if (out !== undefined) await savePlan(context, api, { path: out, modules, to: to ?? null, runs });
      return runOutcome(runs, { kind: 'plan', detailed, verbose: context.globals.verbose, confirmSecs });
    }
    if (isEmpty(target)) return nothingChosen(context, { kind: 'plan', detailed });
    const order = { fleet: target, modules, pace, allowEmpty: choice.allowEmpty, confirmSecs, detailed };
    const { outcome, runs } = await planFleet(context, api, order);
    if (out !== undefined) await savePlan(context, api, { path: out, modules, runs });
    return outcome;
  },
});
