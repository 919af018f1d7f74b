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
import { type Application, changesOf, newsOf, stateAfter } from './next-state.js';
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

interface Order {
  readonly desired: LocalDesired;
  readonly expect: string | null;
  tell(result: Extract<AgentRun, { readonly result: unknown }>['result']['resources'][number]): void;
}

/** What was done is kept, however it ended. Throws `plan_stale` when nothing was, because the machine has changed. */
async function applyTo(context: Context, session: LocalSession, { desired, expect, tell }: Order) {
  const { clock, signal } = context;
  const { machine, state, results, announcements } = session;
  const application = begin(session, desired);
  const { operationId } = application;
  const keep = keeper(session, application);
  const startedAt = clock.now();
  const outcome = await machine.apply(desired, {
    signal,
    expect,
    operationId,
    onResults: (items) => {
      keep.note(items);
      for (const item of items) {
        tell(item.result);
        if (context.globals.verbose) noteOutput(context, item);
      }
    },
    intend: keep.announce,
  });
  if (outcome.error?.code === 'plan_stale') {
    throw new Fault('plan_stale', outcome.error.message, { hint: 'the machine has changed since: plan again' });
  }
  const changes = changesOf(application, outcome.results);
  const hasNews = outcome.end === 'succeeded' || changes.put.length + changes.gone.length > 0;
  const next = hasNews ? stateAfter(state, [{ ...changes, order: orderOf(desired) }]) : state;
  if (hasNews || results.earlier.length > 0) saveState(machine.dataDir, next);
  results.clear();
  announcements.clear();
  return runResultOf(session, { desired, outcome, operationId, startedAt, finishedAt: clock.now() });
}

function begin({ machine, state, announcements }: LocalSession, desired: LocalDesired): Application {
  const before = new Map(state.applied.map((one) => [resourceKey(one), one]));
  return { desired, operationId: machine.newId(), before, announcements };
}

/** Brings results to the disk before they are told, and announcements before what they announce is done. */
function keeper({ machine, state, results, announcements }: LocalSession, application: Application) {
  const content = [...application.desired.resources, ...application.desired.removals];
  let order: { readonly order?: string[] } = { order: orderOf(application.desired) };
  // Results mask secrets with the key that stands in the state, so that one has to be there before them.
  let hasState = state.operation_id !== null;
  const requireState = () => {
    if (!hasState) saveState(machine.dataDir, state);
    hasState = true;
  };
  return {
    note: (items: readonly LocalItem[]) => {
      const news = newsOf(application, changesOf(application, items));
      if (news.put.length + news.gone.length === 0) return;
      results.note({ ...news, ...order }, requireState);
      order = {};
    },
    announce: (intents: readonly Pick<LocalItem, 'index' | 'existed'>[]) => {
      requireState();
      results.flush();
      announcements.add(
        intents.flatMap(({ index, existed }) => {
          const item = content[index];
          return item === undefined || existed === null ? [] : [[resourceKey(item), existed] as const];
        }),
      );
    },
  };
}

const orderOf = ({ resources }: LocalDesired): string[] => resources.map(resourceKey);

/** Nobody stores what scripts write without an orchestrator. */
function noteOutput(context: Context, { result, output }: LocalItem): void {
  if (output == null) return;
  context.note(`output of ${resourceName(result)}:`);
  for (const line of outputLines(output)) context.note(['    ', ...spansOf(line)]);
}
