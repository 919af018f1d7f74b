/** `orch apply --local`. */
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import type { Outcome } from '../outcome.js';
import type { LocalItem } from '../programs.js';
import { outputLines } from '../render/output.js';
import { spansOf } from '../render/paint.js';
import { resourceName } from '../render/resource.js';
import type { AgentRun } from '../runs/agent-run.js';
import { consentTo } from '../runs/confirm-apply.js';
import { runAgents } from '../runs/run-agents.js';
import { runOutcome } from '../runs/run-outcome.js';
import { resourceKey, saveState } from './believed-state.js';
import { type LocalDesired, localDesired } from './local-desired.js';
import { guardRemovals } from './local-guard.js';
import type { LocalChoice } from './local-options.js';
import { runResultOf } from './local-result.js';
import { type LocalSession, withLocal } from './local-session.js';
import { stateAfter } from './next-state.js';
import { localPlan } from './plan-local.js';

export interface LocalApply extends LocalChoice {
  readonly allowRemovals: number | null;
  /** Changes give the exit status 2. */
  readonly detailed: boolean;
}

export const applyLocal = (context: Context, { detailed, allowRemovals, ...choice }: LocalApply): Promise<Outcome> =>
  withLocal(context, choice, async (session) => {
    const { verbose } = context.globals;
    const desired = localDesired(session, choice.file);
    const { missed, expect } = await confirm(context, session, desired);
    if (missed.length > 0) return runOutcome(missed, { kind: 'apply', detailed, verbose });
    guardRemovals(session, desired, allowRemovals);
    const runs = await runAgents(context, {
      kind: 'apply',
      agents: [session.agent],
      run: (agent, progress) =>
        applyTo(context, session, { desired, expect, tell: (result) => progress.resource(agent, result) }),
    });
    return runOutcome(runs, { kind: 'apply', detailed, verbose });
  });

/** Nothing is looked at before with `--yes`. */
async function confirm(context: Context, session: LocalSession, desired: LocalDesired) {
  if (context.globals.yes) return { missed: [], expect: null };
  const { runs, observed } = await localPlan(context, session, desired);
  const { missed } = await consentTo(context, runs);
  return { missed, expect: observed };
}

interface Application {
  readonly desired: LocalDesired;
  readonly expect: string | null;
  tell(result: Extract<AgentRun, { readonly result: unknown }>['result']['resources'][number]): void;
}

/** What was done is kept, however it ended. Throws `plan_stale` when nothing was, because the machine has changed. */
async function applyTo(context: Context, session: LocalSession, { desired, expect, tell }: Application) {
  const { clock, signal } = context;
  const { machine, announcements } = session;
  const content = [...desired.resources, ...desired.removals];
  const operationId = machine.newId();
  const startedAt = clock.now();
  const outcome = await machine.apply(desired, {
    signal,
    expect,
    operationId,
    onResults: (items) => {
      for (const item of items) {
        tell(item.result);
        if (context.globals.verbose) noteOutput(context, item);
      }
    },
    intend: (intents) =>
      announcements.add(
        intents.flatMap(({ index, existed }) => {
          const item = content[index];
          return item === undefined || existed === null ? [] : [[resourceKey(item), existed] as const];
        }),
      ),
  });
  if (outcome.error?.code === 'plan_stale') {
    throw new Fault('plan_stale', outcome.error.message, { hint: 'plan again' });
  }
  const next = stateAfter(session, { desired, outcome, operationId });
  if (next !== null) saveState(machine.dataDir, next);
  announcements.clear();
  return runResultOf(session, { desired, outcome, operationId, startedAt, finishedAt: clock.now() });
}

/** Nobody stores what scripts write without an orchestrator. */
function noteOutput(context: Context, { result, output }: LocalItem): void {
  if (output == null) return;
  context.note(`output of ${resourceName(result)}:`);
  for (const line of outputLines(output)) context.note(['    ', ...spansOf(line)]);
}
