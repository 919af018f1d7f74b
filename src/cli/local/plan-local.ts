/** `orch plan --local`. */
import type { Context } from '../context.js';
import type { Outcome } from '../outcome.js';
import type { AgentRun } from '../runs/agent-run.js';
import { runAgents } from '../runs/run-agents.js';
import { runOutcome } from '../runs/run-outcome.js';
import { type LocalDesired, localDesired } from './local-desired.js';
import type { LocalChoice } from './local-options.js';
import { runResultOf } from './local-result.js';
import { type LocalSession, withLocal } from './local-session.js';

export const planLocal = (context: Context, choice: LocalChoice, detailed: boolean): Promise<Outcome> =>
  withLocal(context, choice, async (session) => {
    const { runs } = await localPlan(context, session, localDesired(session, choice.file));
    return runOutcome(runs, { kind: 'plan', detailed, verbose: context.globals.verbose });
  });

export interface LocalPlan {
  readonly runs: readonly AgentRun[];
  /** A hash of what the plan saw, for an apply that does only that; null when it was stopped. */
  readonly observed: string | null;
}

export async function localPlan(context: Context, session: LocalSession, desired: LocalDesired): Promise<LocalPlan> {
  const { agent, machine } = session;
  let observed: string | null = null;
  const runs = await runAgents(context, {
    kind: 'plan',
    agents: [agent],
    run: async (_agent, progress) => {
      const startedAt = context.clock.now();
      const outcome = await machine.plan(desired, {
        signal: context.signal,
        onResults: (items) => {
          for (const { result } of items) progress.resource(agent, result);
        },
      });
      observed = outcome.observed;
      const finishedAt = context.clock.now();
      const result = runResultOf(session, { desired, outcome, operationId: null, startedAt, finishedAt });
      return outcome.end === 'succeeded' ? result : { ...result, status: 'failed' };
    },
  });
  return { runs, observed };
}
