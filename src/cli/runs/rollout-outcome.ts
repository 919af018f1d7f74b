/** `plan` and `apply` with `--assignment`: what they do and what comes of it. */
import type { ApiClient } from '../../client/api-client.js';
import type { Context } from '../context.js';
import { storeModules } from '../modules/run-modules.js';
import { requireSome } from '../nodes/choose-agents.js';
import type { Outcome } from '../outcome.js';
import { type AgentRun, runsBody } from './agent-run.js';
import { consentTo } from './confirm-apply.js';
import { applyRollout, planRollout, type RolloutOrder, type RolloutRuns } from './rollout-runs.js';
import { runOutcome } from './run-outcome.js';

export interface RolloutChoice extends RolloutOrder {
  readonly allowEmpty: boolean;
  /** Changes give the exit status 2. */
  readonly detailed: boolean;
}

export async function planOutcome(
  context: Context,
  api: ApiClient,
  choice: RolloutChoice,
): Promise<{ readonly outcome: Outcome; readonly runs: readonly AgentRun[] }> {
  const { rollout, runs } = await planRollout(context, api, choice);
  refuseEmpty(rollout.summary.agents, choice);
  return { outcome: { ...outcomeOf(context, runs, { kind: 'plan', choice }), body: rollout }, runs };
}

export async function applyOutcome(
  context: Context,
  api: ApiClient,
  choice: RolloutChoice & { readonly allowRemovals: number | null },
): Promise<Outcome> {
  const { planned, missed } = await agreed(context, api, choice);
  const apply = async () => {
    await storeModules(context, api, choice.modules);
    return applyRollout(context, api, { ...choice, expect: planned });
  };
  const applied: RolloutRuns | null = planned !== null && Object.keys(planned).length === 0 ? null : await apply();
  if (applied !== null && missed.length === 0) refuseEmpty(applied.rollout.summary.agents, choice);
  const runs = [...(applied?.runs ?? []), ...missed];
  const outcome = outcomeOf(context, runs, { kind: 'apply', choice });
  // The API's own answer says nothing of agents that the plan has missed.
  return { ...outcome, body: applied === null || missed.length > 0 ? runsBody(runs, true) : applied.rollout };
}

interface Agreed {
  /** Null when nobody was asked. */
  readonly planned: Readonly<Record<string, string>> | null;
  readonly missed: readonly AgentRun[];
}

async function agreed(context: Context, api: ApiClient, choice: RolloutChoice): Promise<Agreed> {
  if (context.globals.yes) return { planned: null, missed: [] };
  const { rollout, runs } = await planRollout(context, api, { ...choice, pace: {} });
  refuseEmpty(rollout.summary.agents, choice);
  const { planned, missed } = await consentTo(context, runs);
  const hashes = planned.flatMap(({ agent, result }) =>
    'plan_hash' in result && result.plan_hash !== null ? [[agent.node_id, result.plan_hash] as const] : [],
  );
  return { planned: Object.fromEntries(hashes), missed };
}

const refuseEmpty = (agents: number, { assignment, allowEmpty }: RolloutChoice): void =>
  requireSome(agents, { nodes: [], assignment, selector: undefined, allowEmpty });

const outcomeOf = (
  { globals }: Context,
  runs: readonly AgentRun[],
  { kind, choice }: { readonly kind: 'plan' | 'apply'; readonly choice: RolloutChoice },
): Outcome => runOutcome(runs, { kind, detailed: choice.detailed, verbose: globals.verbose, fleet: true });
