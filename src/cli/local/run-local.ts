/** The runs of `orch plan`, `apply` and `drift` with `--local`, and their results in the shapes of the API. */

import { dirname, resolve } from 'node:path';
import type { DriftDetail, RunResult } from '../../contract/runs.js';
import { toSeconds } from '../../kernel/clock.js';
import { Fault } from '../../kernel/fault.js';
import { idAbove } from '../../kernel/rising-ids.js';
import type { LocalItem, LocalOutcome } from '../../programs/local.js';
import { CATALOGUE } from '../../resources/catalogue.js';
import { checkResults, pendingChecks } from '../../resources/checks/check.js';
import type { DesiredResource } from '../../resources/desired.js';
import { purgedByAll } from '../../resources/purge.js';
import { MAX_UNASKED } from '../../resources/removal-guard.js';
import { resourceKey } from '../../resources/resource-key.js';
import { summarize } from '../../resources/result.js';
import { maskResource } from '../../resources/tainted-body.js';
import type { Context } from '../context.js';
import type { Outcome } from '../outcome.js';
import { spansOf } from '../render/paint.js';
import { outputLines, resourceName } from '../render/plan-lines.js';
import type { AgentRun } from '../runs/agent-run.js';
import { consentTo } from '../runs/consent.js';
import { createRunProgress } from '../runs/follow-run.js';
import { runOutcome } from '../runs/run-view.js';
import type { Applied } from './believed-state-schema.js';
import { guardRemovals, type LocalDesired, localDesired } from './local-desired.js';
import type { LocalChoice } from './local-options.js';
import { type LocalSession, withLocal } from './local-session.js';
import { saveState, stateAfter } from './local-state.js';

export const planLocal = (context: Context, choice: LocalChoice, detailed: boolean): Promise<Outcome> =>
  withLocal(context, choice, async (session) => {
    const { runs } = await localPlan(context, session, await localDesired(session, choice, context.warn));
    return runOutcome(runs, { kind: 'plan', detailed, verbose: context.globals.verbose });
  });

export interface LocalPlan {
  readonly runs: readonly AgentRun[];
  /** Hash of the observed machine, for an apply of exactly this plan; null if the plan was stopped. */
  readonly observed: string | null;
}

export async function localPlan(context: Context, session: LocalSession, desired: LocalDesired): Promise<LocalPlan> {
  const { agent, engine } = session;
  const progress = createRunProgress(context, 'plan', 1);
  const startedAt = context.clock.now();
  const outcome = await engine.plan(desired, {
    signal: context.signal,
    onResults: (items) => {
      for (const { result } of items) progress.resource(agent, result);
    },
  });
  const finishedAt = context.clock.now();
  const result = runResultOf(session, { desired, outcome, operationId: null, startedAt, finishedAt });
  const run = { agent, result: outcome.end === 'succeeded' ? result : ({ ...result, status: 'failed' } as const) };
  return { runs: [run], observed: outcome.observed };
}

export interface LocalApply extends LocalChoice {
  readonly allowRemovals: number | null;
  /** True if changes give the exit status 2. */
  readonly detailed: boolean;
}

export const applyLocal = (context: Context, { detailed, allowRemovals, ...choice }: LocalApply): Promise<Outcome> =>
  withLocal(context, choice, async (session) => {
    const { verbose } = context.globals;
    const desired = await localDesired(session, choice, context.warn);
    // A yes to the question covers the removals that it names.
    if (context.globals.yes || allowRemovals !== null) guardRemovals(session, desired, allowRemovals);
    const { missed, expect, purged } = await confirm(context, session, desired);
    const mayPurge = Math.max(MAX_UNASKED, allowRemovals ?? purged);
    if (missed.length > 0) return runOutcome(missed, { kind: 'apply', detailed, verbose });
    const { agent } = session;
    const progress = createRunProgress(context, 'apply', 1);
    const tell: Order['tell'] = (result) => progress.resource(agent, result);
    const runs = [{ agent, result: await applyTo(context, session, { desired, expect, mayPurge, tell }) }];
    return runOutcome(runs, { kind: 'apply', detailed, verbose });
  });

/** Plans and asks for consent; skips both with `--yes`. */
async function confirm(context: Context, session: LocalSession, desired: LocalDesired) {
  if (context.globals.yes) return { missed: [], expect: null, purged: 0 };
  const { runs, observed } = await localPlan(context, session, desired);
  const { missed } = await consentTo(context, runs);
  const purged = runs.flatMap((run) => ('result' in run ? run.result.resources : []));
  return { missed, expect: observed, purged: purgedByAll(purged) };
}

interface Order {
  readonly desired: LocalDesired;
  readonly expect: string | null;
  readonly mayPurge: number;
  tell(result: Extract<AgentRun, { readonly result: unknown }>['result']['resources'][number]): void;
}

/** Applies and stores what was done, however it ended. Throws `plan_stale` if the machine has changed since the plan. */
async function applyTo(context: Context, session: LocalSession, { desired, expect, mayPurge, tell }: Order) {
  const { clock, signal } = context;
  const { machine, engine, state, existed } = session;
  const operationId = newOperationId(session);
  const startedAt = clock.now();
  const outcome = await engine.apply(desired, {
    signal,
    expect,
    mayPurge,
    operationId,
    files: placesOf(desired),
    // The key in the state made the masks that the journal is about to hold.
    beforeChanges: () => {
      if (state.operation_id === null) saveState(machine.dataDir, state);
    },
    onResults: (items) => {
      for (const item of items) {
        tell(item.result);
        if (context.globals.verbose) noteOutput(context, item);
      }
    },
  });
  if (outcome.error?.code === 'plan_stale') {
    throw new Fault('plan_stale', outcome.error.message, { hint: 'the machine has changed since: plan again' });
  }
  const after = stateAfter(state, { operationId, content: desired, items: outcome.results, existed });
  const isFirst = state.operation_id === null && outcome.end === 'succeeded';
  if (after !== state || isFirst || engine.applies.length > 0) {
    saveState(machine.dataDir, isFirst ? { ...after, operation_id: operationId } : after);
  }
  engine.acknowledge();
  return runResultOf(session, { desired, outcome, operationId, startedAt, finishedAt: clock.now() });
}

/** Returns the paths on this machine of the files beside the modules, by SHA-256. */
const placesOf = ({ beside = {} }: LocalDesired): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(beside).flatMap(([module, files]) =>
      Object.entries(files).map(([path, sha256]) => [sha256, resolve(dirname(module), path)] as const),
    ),
  );

/** Returns an ID above those of all earlier applies, also after the clock was set back. */
function newOperationId({ machine, engine, state }: LocalSession): string {
  const known = [state.operation_id ?? '', ...engine.applies.map(({ operationId }) => operationId)].sort();
  const last = known.at(-1);
  return last ? idAbove(last, machine.newId()) : machine.newId();
}

/** Prints the output of a script, which --local does not store. */
function noteOutput(context: Context, { result, output }: LocalItem): void {
  if (output == null) return;
  context.note(`output of ${resourceName(result)}:`);
  for (const line of outputLines(output)) context.note(['    ', ...spansOf(line)]);
}

/** Runs `orch drift --local`. Throws `no_snapshot` if nothing was ever applied. */
export const driftLocal = (context: Context, choice: LocalChoice, detailed: boolean): Promise<Outcome> =>
  withLocal(context, choice, async (session) => {
    const operationId = session.state.operation_id;
    if (operationId === null) throw noSnapshot(session);
    const resources = await toCompare(context, session, choice);
    const { agent, machine, engine } = session;
    const progress = createRunProgress(context, 'drift', 1);
    const startedAt = context.clock.now();
    const outcome = await engine.drift(
      { resources, removals: [] },
      {
        signal: context.signal,
        onResults: (items) => {
          for (const { result } of items) progress.resource(agent, result);
        },
      },
    );
    const driftId = machine.newId();
    const finishedAt = context.clock.now();
    const runs = [{ agent, result: driftDetailOf(session, { driftId, operationId, outcome, startedAt, finishedAt }) }];
    return runOutcome(runs, { kind: 'drift', detailed, verbose: context.globals.verbose });
  });

/** Returns the applied resources, with secrets filled in from the given files. Leaves out fields whose secrets are not given. */
async function toCompare(
  context: Context,
  session: LocalSession,
  choice: LocalChoice,
): Promise<readonly DesiredResource[]> {
  const wanted = choice.file.length === 0 ? [] : (await localDesired(session, choice, context.warn)).resources;
  const byKey = new Map(wanted.map((resource) => [resourceKey(resource), resource]));
  return session.state.applied.flatMap((applied) => {
    const { module, kind, identity, id, name, body, taint } = applied;
    const resource = { module, kind, identity, id, name, body, after: [] };
    if (taint === undefined || Object.keys(taint).length === 0) return resource;
    const again = byKey.get(resourceKey(applied));
    if (again !== undefined && isSame(applied, maskResource(again))) {
      return { ...resource, body: again.body, ...(again.taint ? { taint: again.taint } : {}) };
    }
    const fields = [...new Set(Object.keys(taint).map((path) => path.split('/')[1] ?? ''))];
    const left = new Set(fields.flatMap((field) => [field, ...boundTo(kind, field)]));
    const why =
      again === undefined ? 'give -f and --secret-file' : 'a value or the module is another one than at the last apply';
    context.warn(`${kind} ${identity}: ${fields.join(', ')} holds a secret and is not compared; ${why}`);
    // A resource that requires one of these fields cannot be compared at all.
    if (requiredBy(kind).some((field) => left.has(field))) return [];
    return { ...resource, body: Object.fromEntries(Object.entries(body).filter(([field]) => !left.has(field))) };
  });
}

/** Returns the fields that are only comparable together with this one. */
function boundTo(kind: string, field: string): readonly string[] {
  const { inseparable = [] }: { readonly inseparable?: readonly string[] } = CATALOGUE.get(kind) ?? {};
  return inseparable.includes(field) ? inseparable : [];
}

function requiredBy(kind: string): readonly string[] {
  const { required = [] }: { readonly required?: readonly string[] } = CATALOGUE.get(kind)?.schema ?? {};
  return required;
}

/** Compares masked bodies. The mark of a secret differs if its value does. */
const isSame = ({ body }: Applied, masked: DesiredResource): boolean =>
  JSON.stringify(body) === JSON.stringify(masked.body);

const noSnapshot = ({ agent }: LocalSession): Fault =>
  new Fault(
    'no_snapshot',
    `nothing was ever applied to ${agent.name} with --local, so there is nothing to compare with`,
    {
      hint: 'apply something first: orch apply --local -f FILE',
    },
  );

interface Times {
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly finishedAt: number;
}

interface RunParts extends Times {
  readonly desired: LocalDesired;
  readonly outcome: LocalOutcome;
  /** Operation ID; null for a plan. */
  readonly operationId: string | null;
}

export function runResultOf({ agent }: LocalSession, parts: RunParts): RunResult {
  const { desired, outcome, operationId, startedAt, finishedAt } = parts;
  const resources = [...outcome.results.map(({ result }) => result), ...desired.failures];
  const isPlan = operationId === null;
  const done = isPlan ? 'pending' : 'changed';
  const { verify = [] } = desired;
  return {
    operation_id: operationId,
    node_id: agent.node_id,
    status: statusOf(outcome, desired),
    has_changes: resources.some(({ status }) => status === done),
    modules: [...desired.modules],
    started_at: toSeconds(startedAt),
    finished_at: toSeconds(finishedAt),
    summary: {
      ...summarize(resources),
      total: desired.resources.length + desired.removals.length + desired.failures.length,
    },
    resources,
    ...(verify.length > 0 && { checks: isPlan ? pendingChecks(verify) : checkResults(verify, outcome.checks ?? []) }),
    warnings: desired.warnings,
    ...(desired.notes.length > 0 && { notes: [...desired.notes] }),
    plan_hash: null,
    error: outcome.error,
  };
}

/** Returns the status of a run. A removal that cannot be carried out makes it failed. */
function statusOf({ end }: LocalOutcome, { failures }: LocalDesired): RunResult['status'] {
  if (end === 'refused') return 'failed';
  return end === 'succeeded' && failures.length > 0 ? 'failed' : end;
}

interface DriftParts extends Times {
  readonly driftId: string;
  /** ID of the apply to compare with. */
  readonly operationId: string;
  readonly outcome: LocalOutcome;
}

export function driftDetailOf({ agent }: LocalSession, parts: DriftParts): DriftDetail {
  const { driftId, operationId, outcome, startedAt, finishedAt } = parts;
  const resources = outcome.results.map(({ result }) => result);
  const { status, error } = driftStatus(outcome);
  return {
    drift_id: driftId,
    node_id: agent.node_id,
    status,
    trigger: 'manual',
    requested_by: null,
    operation_id: operationId,
    started_at: toSeconds(startedAt),
    finished_at: toSeconds(finishedAt),
    has_changes: resources.some((resource) => resource.status === 'pending'),
    snoozed: 0,
    accepted: 0,
    summary: summarize(resources),
    error,
    resources,
  };
}

/** Returns the status of a drift check. Any difference is drift, even if other resources could not be observed. */
function driftStatus({ end, error, results }: LocalOutcome): Pick<DriftDetail, 'status' | 'error'> {
  const statuses = results.map(({ result }) => result.status);
  if (statuses.includes('pending')) return { status: 'drifted', error };
  if (end === 'succeeded' && statuses.every((status) => status === 'unchanged')) return { status: 'in_sync', error };
  const failed = statuses.filter((status) => status === 'failed').length;
  const unobserved = { code: 'observe_failed', message: `${failed} resources could not be observed` };
  return { status: end === 'cancelled' ? 'cancelled' : 'failed', error: error ?? unobserved };
}
