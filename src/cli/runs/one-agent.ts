/** Plan and apply of a single named agent, followed resource by resource. Ctrl-C leaves the apply running, twice cancels it. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { RunResult } from '../../contract/runs.js';
import { messageOf } from '../../kernel/fault.js';
import type { ResourceResult } from '../../resources/result.js';
import type { Context } from '../context.js';
import { agentName } from '../format.js';
import { sendFiles } from '../modules/files-beside.js';
import { oneOffLines } from '../modules/one-off-values.js';
import { applyModulesBody, planBody, type RunModules } from '../modules/send-modules.js';
import { lines, type Outcome } from '../outcome.js';
import { type ApplyLimits, limitsBody } from './apply-limits.js';
import { consentTo } from './consent.js';
import { createRunProgress, followRun, resumption } from './follow-run.js';
import { leaving, WITHIN } from './leave-or-cancel.js';
import { runOutcome } from './run-view.js';
import { afterLines, beforeLines, withBases } from './trial-lines.js';
import { whenFree } from './when-free.js';

interface FinishedRun {
  readonly agent: Agent;
  readonly result: RunResult;
}

/** Plans on one agent. Stores nothing. */
export async function planAgent(
  context: Context,
  api: ApiClient,
  { agent, modules, to, waitSecs }: Pick<AgentChoice, 'agent' | 'modules' | 'to' | 'waitSecs'>,
): Promise<FinishedRun> {
  await sendFiles(context, api, modules.files);
  const progress = createRunProgress(context, 'plan', 1);
  const params = { node_id: agent.node_id };
  const body = to === null ? planBody(modules) : { modules: [], to };
  return whenFree(context, api, { agent, secs: waitSecs }, async () => {
    const stream = api.stream('planAgent', { params, body, signal: context.signal });
    const result = await followRun(stream, { resource: (resource) => progress.resource(agent, resource) });
    return { agent, result };
  });
}

interface AgentChoice {
  readonly agent: Agent;
  readonly modules: RunModules;
  /** Earlier operation whose desired state replaces modules; null for modules. */
  readonly to: string | null;
  readonly limits: ApplyLimits;
  /** Seconds to wait for a busy agent; null to fail at once. */
  readonly waitSecs: number | null;
  /** True to ask although the plan has no changes [default: false]. */
  readonly asksAlways?: boolean;
}

/**
 * Asks for consent and applies the modules; those of files stay on the agent, or are published if no other machine follows them. A
 * plan without changes needs no consent; its apply records what is managed.
 */
export async function confirmAndApply(context: Context, api: ApiClient, choice: AgentChoice): Promise<AppliedRun> {
  const { agent } = choice;
  const agreed = await agree(context, api, choice);
  if (agreed.failed !== null) return { run: agreed.failed, lines: [] };
  const { order } = agreed;
  const run = await whenFree(context, api, { agent, secs: choice.waitSecs }, () => applyAgent(context, api, order));
  return { run, lines: await afterLines(context, api, order.modules.files, [agent]) };
}

interface AppliedRun {
  readonly run: FinishedRun;
  /** Outcome for each file. */
  readonly lines: readonly string[];
}

/** Plans and asks, except with --yes. Returns the order, or the plan if it failed. Throws `cancelled`. */
async function agree(
  context: Context,
  api: ApiClient,
  choice: AgentChoice,
): Promise<{ readonly failed: FinishedRun } | { readonly failed: null; readonly order: ApplyOrder }> {
  const { agent, limits, asksAlways = false } = choice;
  const { files, reaches } = await withBases(context, api, choice.modules.files, [agent]);
  const modules = { ...choice.modules, files };
  const lines = [...beforeLines(reaches, [agent]), ...oneOffLines(modules.values)];
  if (context.globals.yes) {
    for (const line of lines) context.note(line);
    return { failed: null, order: { ...choice, modules, expect: null } };
  }
  const plan = await planAgent(context, api, choice);
  const consent = await consentTo(context, [plan], { limits, lines, asksAlways });
  if (consent.missed.length > 0) return { failed: plan };
  const { plan_hash: expect } = plan.result;
  return { failed: null, order: { ...choice, modules, expect, limits: consent.limits } };
}

const outcomeOptions = ({ globals }: Context) =>
  ({ kind: 'apply', detailed: false, verbose: globals.verbose }) as const;

/** Begins an apply on one agent, after the same consent, and does not follow it. */
export async function confirmAndDetach(context: Context, api: ApiClient, choice: AgentChoice): Promise<Outcome> {
  const agreed = await agree(context, api, choice);
  if (agreed.failed !== null) return runOutcome([agreed.failed], outcomeOptions(context));
  const { order } = agreed;
  return whenFree(context, api, { agent: choice.agent, secs: choice.waitSecs }, () => detachAgent(context, api, order));
}

interface ApplyOrder extends Pick<AgentChoice, 'agent' | 'modules' | 'to' | 'limits'> {
  /** Hash of the approved plan; null with --yes. */
  readonly expect: string | null;
}

const applyBody = ({ modules, to, expect, limits }: ApplyOrder) => ({
  ...(to === null ? applyModulesBody(modules) : { modules: [], to }),
  expect,
  ...limitsBody(limits),
});

/** Begins an apply of modules, or of an earlier desired state, on one agent, and does not follow it. */
export async function detachAgent(context: Context, api: ApiClient, order: ApplyOrder): Promise<Outcome> {
  const { agent } = order;
  await sendFiles(context, api, order.modules.files);
  const body = { ...applyBody(order), wait: false };
  const params = { node_id: agent.node_id };
  const result = await api.call('applyAgent', { params, body, signal: context.signal });
  const { operation_id: id } = result;
  return {
    body: result,
    names: id === null ? [] : [id],
    view: lines(
      `Operation ${id} has begun on ${agentName(agent)}.`,
      `  watch it:  orch ops watch ${id}`,
      `  cancel it: orch ops cancel ${id}`,
    ),
  };
}

/** Applies modules, or an earlier desired state, to one agent. */
export async function applyAgent(context: Context, api: ApiClient, order: ApplyOrder): Promise<FinishedRun> {
  const { agent } = order;
  await sendFiles(context, api, order.modules.files);
  let operation: string | null = null;
  const left = leaving(context, {
    tell: (last) => tellHowToGoOn(context, operation, last),
    cancel: async () => {
      if (operation !== null) await cancelOperation(context, api, operation);
    },
  });
  const progress = createRunProgress(context, 'apply', 1);
  try {
    const stream = api.stream('applyAgent', {
      params: { node_id: agent.node_id },
      body: applyBody(order),
      signal: left.signal,
    });
    const follower = {
      started: (id: string) => {
        operation = id;
      },
      resource: (resource: ResourceResult) => progress.resource(agent, resource),
      awaiting: (leftSecs: number) => progress.awaiting(agent, leftSecs),
    };
    const work = followRun(stream, follower, resumption(context, api, left.signal));
    return { agent, result: await Promise.race([work, left.promise]) };
  } finally {
    progress.end();
    left.stop();
  }
}

function tellHowToGoOn({ note }: Context, operation: string | null, last: boolean): void {
  if (operation === null) {
    note('Interrupted. What has begun goes on; see: orch ops');
    return;
  }
  note(`Operation ${operation} goes on without you.`);
  note(`  watch it:  orch ops watch ${operation}`);
  note(`  cancel it: orch ops cancel ${operation}`);
  if (!last) note(`Press Ctrl-C again ${WITHIN} to cancel.`);
}

async function cancelOperation({ note, warn }: Context, api: ApiClient, operation_id: string): Promise<void> {
  try {
    await api.call('cancelOperation', { params: { operation_id } });
    note(`Operation ${operation_id} is being cancelled: it stops at the next resource.`);
  } catch (error) {
    warn(`operation ${operation_id} could not be cancelled: ${messageOf(error)}`);
  }
}
