/** Asks for consent, applies to agents and follows. Ctrl-C leaves the applies running, twice cancels them. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentName, count } from '../format.js';
import { resourceName } from '../render/plan-lines.js';
import { type AgentRun, hasResult } from './agent-run.js';
import { leaveOrCancel } from './leave-or-cancel.js';
import { followRun, planAgents, type RunTargets, runAgents, type Work } from './run-agents.js';
import { runsView } from './run-view.js';

interface ApplyOrder extends Pick<Work, 'pace' | 'fleet'> {
  readonly targets: readonly ApplyTarget[];
  readonly modules: readonly string[];
  readonly allowRemovals: number | null;
}

export async function applyAgents(context: Context, api: ApiClient, order: ApplyOrder): Promise<readonly AgentRun[]> {
  const running = new Set<string>();
  const left = leaveOrCancel(context, api, running, order.targets.length > 1);
  try {
    const { targets, pace, fleet } = order;
    const work = runAgents(context, {
      kind: 'apply',
      agents: targets.map(({ agent }) => agent),
      ...(pace === undefined ? {} : { pace }),
      ...(fleet === undefined ? {} : { fleet }),
      stopReason: () => (left.interrupted ? 'not started: interrupted' : null),
      run: async (agent, progress) => {
        const stream = api.stream('applyAgent', {
          params: { node_id: agent.node_id },
          body: bodyFor(
            order,
            targets.find((target) => target.agent === agent),
          ),
          signal: left.signal,
        });
        let operation: string | null = null;
        const result = await followRun(stream, {
          started: (id) => {
            operation = id;
            running.add(id);
          },
          resource: (resource) => progress.resource(agent, resource),
        });
        if (operation !== null) running.delete(operation);
        return result;
      },
    });
    return await Promise.race([work, left.promise]);
  } finally {
    left.stop();
  }
}

const bodyFor = ({ modules, allowRemovals }: ApplyOrder, target: ApplyTarget | undefined) => ({
  modules: [...(target?.modules ?? modules)],
  allow_removals: allowRemovals,
  expect: target?.planHash ?? null,
});

interface ApplyTarget {
  readonly agent: Agent;
  /** Hash of the approved plan; null with --yes. */
  readonly planHash: string | null;
  /** Modules of this agent, in place of those of the whole apply. */
  readonly modules?: readonly string[];
}

interface Confirmed {
  readonly targets: readonly ApplyTarget[];
  /** Agents without a plan, which are not applied. */
  readonly missed: readonly AgentRun[];
}

/** Throws `confirmation_required` before any request if consent is needed and there is no terminal. */
export function requireConsent({ prompt, globals }: Context): void {
  if (globals.yes || prompt.possible) return;
  throw new Fault('confirmation_required', 'an apply needs consent, and there is no terminal to ask on', {
    hint: 'add --yes to apply without being asked, or look first with: orch plan',
  });
}

/** Plans, and asks for consent to changes. A plan without changes needs no consent; its apply records what is managed. */
export async function confirmApply(context: Context, api: ApiClient, targets: RunTargets): Promise<Confirmed> {
  if (context.globals.yes) return { targets: targets.agents.map((agent) => ({ agent, planHash: null })), missed: [] };
  const { missed, planned } = await consentTo(context, await planAgents(context, api, { ...targets, pace: {} }));
  const plans = new Map(planned.map(({ agent, result }) => [agent.node_id, result]));
  return {
    missed,
    targets: targets.agents.flatMap((agent) => {
      const plan = plans.get(agent.node_id);
      return plan === undefined ? [] : [{ agent, planHash: 'plan_hash' in plan ? plan.plan_hash : null }];
    }),
  };
}

type Planned = Extract<AgentRun, { readonly result: unknown }>;

interface Consented {
  readonly planned: readonly Planned[];
  /** Agents without a plan. */
  readonly missed: readonly AgentRun[];
}

/** Shows plans that have changes or failed, and asks for consent. Throws `cancelled`. */
export async function consentTo(context: Context, plans: readonly AgentRun[]): Promise<Consented> {
  context.progress.end();
  const planned = plans.filter(hasResult).filter(({ result }) => result.status === 'succeeded');
  const missed = plans.filter((run) => !hasResult(run) || run.result.status !== 'succeeded');
  const changing = planned.filter(({ result }) => result.has_changes);
  if (changing.length > 0 || missed.length > 0) {
    await context.present(runsView(plans, { kind: 'plan', verbose: context.globals.verbose }));
  }
  if (changing.length > 0) await context.prompt.consent(questionFor(changing));
  return { planned, missed };
}

/** Returns the question, which names each removal. */
export function questionFor(changing: readonly Planned[]): string {
  const [only] = changing;
  const whom = changing.length === 1 && only ? agentName(only.agent) : count(changing.length, 'agent');
  const removals = changing.flatMap(({ agent, result }) =>
    result.resources
      .filter(({ action, status }) => action === 'remove' && status === 'pending')
      .map((resource) => `  - ${resourceName(resource)}${changing.length === 1 ? '' : ` on ${agentName(agent)}`}`),
  );
  if (removals.length === 0) return `Apply this to ${whom}?`;
  return `${[`This removes from ${whom}:`, ...removals].join('\n')}\nApply it, with ${count(removals.length, 'removal')}?`;
}
