/** Plan and apply of a single named agent, followed resource by resource. Ctrl-C leaves the apply running, twice cancels it. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { RunResult } from '../../contract/runs.js';
import { messageOf } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { planBody, type RunModules, storeModules } from '../modules/send-modules.js';
import { consentTo } from './consent.js';
import { createRunProgress, followRun } from './follow-run.js';
import { leaving, WITHIN } from './leave-or-cancel.js';

interface FinishedRun {
  readonly agent: Agent;
  readonly result: RunResult;
}

/** Plans on one agent. Stores nothing. */
export async function planAgent(
  context: Context,
  api: ApiClient,
  { agent, modules }: { readonly agent: Agent; readonly modules: RunModules },
): Promise<FinishedRun> {
  const progress = createRunProgress(context, 'plan', 1);
  const params = { node_id: agent.node_id };
  const stream = api.stream('planAgent', { params, body: planBody(modules), signal: context.signal });
  const result = await followRun(stream, { resource: (resource) => progress.resource(agent, resource) });
  return { agent, result };
}

interface AgentChoice {
  readonly agent: Agent;
  readonly modules: RunModules;
  readonly allowRemovals: number | null;
}

/** Asks for consent, stores the modules and applies them. A plan without changes needs no consent; its apply records what is managed. */
export async function confirmAndApply(context: Context, api: ApiClient, choice: AgentChoice): Promise<FinishedRun> {
  const { agent, modules, allowRemovals } = choice;
  const plan = context.globals.yes ? null : await planAgent(context, api, { agent, modules });
  if (plan !== null) {
    const { missed } = await consentTo(context, [plan]);
    if (missed.length > 0) return plan;
  }
  await storeModules(context, api, modules);
  const expect = plan === null ? null : plan.result.plan_hash;
  return applyAgent(context, api, { agent, modules: modules.names, allowRemovals, expect });
}

interface ApplyOrder {
  readonly agent: Agent;
  /** Names of stored modules. */
  readonly modules: readonly string[];
  readonly allowRemovals: number | null;
  /** Hash of the approved plan; null with --yes. */
  readonly expect: string | null;
}

/** Applies stored modules to one agent. */
export async function applyAgent(context: Context, api: ApiClient, order: ApplyOrder): Promise<FinishedRun> {
  const { agent, modules, allowRemovals, expect } = order;
  let operation: string | null = null;
  const left = leaving(context, {
    tell: (last) => tellHowToGoOn(context, operation, last),
    cancel: async () => {
      if (operation !== null) await cancelOperation(context, api, operation);
    },
  });
  try {
    const progress = createRunProgress(context, 'apply', 1);
    const stream = api.stream('applyAgent', {
      params: { node_id: agent.node_id },
      body: { modules: [...modules], allow_removals: allowRemovals, expect },
      signal: left.signal,
    });
    const work = followRun(stream, {
      started: (id) => {
        operation = id;
      },
      resource: (resource) => progress.resource(agent, resource),
    });
    return { agent, result: await Promise.race([work, left.promise]) };
  } finally {
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
