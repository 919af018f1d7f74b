/** Plan, apply, drift check and recovery of one run on one Host, without journal and link. */

import { type FaultCode, isFault } from '../kernel/fault.js';
import type { DesiredResource } from '../resources/desired.js';
import { wantedFile } from '../resources/file-content.js';
import type { Host, RunStep, SourceFile } from '../resources/host.js';
import type { RunEnd, RunItem } from '../wire/messages.js';
import type { RunContent } from '../wire/parts.js';
import { applyGroup, type Intend, type Intent } from './converge/apply-group.js';
import { carryOut } from './converge/carry-out.js';
import { type Examined, failed, isBad } from './converge/examined.js';
import { Fingerprint } from './converge/fingerprint.js';
import { HeldResults } from './converge/held-results.js';
import { NO_NOTES } from './converge/ledger.js';
import { refusalOf } from './converge/observations.js';
import { refusalOfPurges } from './converge/purge-guard.js';
import { type OnResults, Run, type RunOptions, yieldToEventLoop } from './converge/run.js';
import type { Finding } from './converge/run-item.js';
import { hasRemoved, secondPass } from './converge/second-pass.js';
import { isRemoval, type Refusal, type Target } from './converge/target.js';
import { type Trace, Tracer } from './converge/tracer.js';

export interface Outcome {
  readonly end: Extract<RunEnd, 'succeeded' | 'failed' | 'cancelled' | 'interrupted' | 'refused'>;
  /** In the order in which they occurred; the index of each is its position in the run. */
  readonly results: readonly RunItem[];
  /** The failure of the run as a whole; failures of single resources are in the results. */
  readonly error: Refusal | null;
  /** Steps of an apply that end the agent, to be carried out once the results are stored; absent for none. */
  readonly deferred?: readonly RunStep[];
}

export interface Planned extends Outcome {
  /** SHA-256 in hex of all observations and decisions, for `expect` of an apply; null when the plan was stopped. */
  readonly observed: string | null;
}

export interface Compared extends Outcome {
  /** Traces of drifted resources, of the first ones where there are many. */
  readonly traces: readonly Trace[];
}

export interface ApplyOptions extends RunOptions {
  /** Called before each group of changes. */
  readonly intend?: Intend | undefined;
  /** The `observed` of a plan; if it differs now, the apply is refused before anything is changed. */
  readonly expect?: string | null | undefined;
  /** Maximum entries that purges may delete together [default: `MAX_UNASKED`]. */
  readonly mayPurge?: number | undefined;
}

/** Resources examined between two checks of the signal. */
const WINDOW = 256;

/** Returns what an apply would change. Writes nothing. */
export async function plan(content: RunContent, host: Host, options: RunOptions): Promise<Planned> {
  const run = new Run(content, host, { ...options, purpose: 'plan' });
  const fingerprint = new Fingerprint();
  await run.begin();
  await look(run, (examined) => {
    fingerprint.add(examined);
    return predicted(examined);
  });
  return { ...ended(run), observed: run.isComplete && !run.wasCut ? fingerprint.digest() : null };
}

/** Compares the machine with the applied state; `pending` results have drifted. Writes nothing. */
export async function drift(content: RunContent, host: Host, options: RunOptions): Promise<Compared> {
  const run = new Run({ resources: content.resources, removals: [] }, host, {
    ...options,
    purpose: 'drift',
    isIndependent: true,
  });
  const tracer = new Tracer(host);
  await look(run, (examined) => {
    const finding = inDrift(predicted(examined));
    if (finding.status === 'pending') tracer.add(examined);
    return finding;
  });
  return { ...ended(run), traces: tracer.traces };
}

/** Brings the machine into the desired state. Resources that a signal leaves out are reported as skipped. */
export async function apply(content: RunContent, host: Host, options: ApplyOptions): Promise<Outcome> {
  if (await isStale(content, host, options)) {
    const message = 'the machine is no longer as the plan saw it, so nothing was changed';
    return { end: 'refused', results: [], error: { code: 'plan_stale', message } };
  }
  const refusal = (await refusalOfPurges(content, host, options)) ?? (await bringFiles(content, host, options));
  if (refusal !== null) return { end: 'refused', results: [], error: refusal };
  const results: RunItem[] = [];
  const passOn: OnResults = async (items, notes) => {
    results.push(...items);
    await options.onResults?.(items, notes);
  };
  const deferred: RunStep[] = [];
  const removes = content.removals.some(({ origin }) => origin === 'created');
  const held = new HeldResults(removes ? content.resources.length : 0, passOn);
  const run = new Run(content, host, { ...options, deferred, onResults: held.take, purpose: 'apply' });
  try {
    await run.begin();
    await carryOut(run, (group) => applyGroup(run, group, options.intend));
    if (hasRemoved(run)) await secondPass(run, held, content, host, { ...options, deferred, onResults: passOn });
  } catch (error) {
    // The agent stops in the middle of a command. The next process finds out what has become of it.
    if (isFault(error, 'interrupted')) throw error;
    const refusal = refusalOf(error, 'internal');
    await held.release();
    await run.skipRest(refusal);
    return { end: 'failed', results: held.inOrder(results), error: refusal, deferred };
  }
  await held.release();
  await run.skipRest({ code: run.stopCode, message: STOPPED[run.stopCode] });
  const outcome = { ...ended(run, held.inOrder(results)), deferred };
  const paid = outcome.end === 'succeeded' ? run.ledgerUpdates.obsolete(run.desired) : [];
  if (paid.length > 0) await options.onResults?.([], { paid, memos: [] });
  return outcome;
}

/**
 * Brings the files beside modules and the downloads that a plan would take, so that a file that does not come leaves nothing half done. Returns why
 * one does not come, else null.
 */
async function bringFiles(
  { resources }: RunContent,
  host: Host,
  { clock, signal, ledger, onResults }: ApplyOptions,
): Promise<Refusal | null> {
  // They are planned alone, so positions in the whole run mean nothing here.
  const sourced = resources.flatMap((one) => (sourceOf(one) === null ? [] : [{ ...one, after: [] }]));
  if (sourced.length === 0) return null;
  const { results } = await plan({ resources: sourced, removals: [] }, host, { clock, signal, ledger });
  // A file whose directory is made by this apply fails in this plan, and is needed.
  const wanted = results.flatMap(({ index, result }) => {
    const source = result.status === 'unchanged' ? null : sourceOf(sourced[index]);
    return source === null ? [] : [source];
  });
  const alive = setInterval(() => void onResults?.([], NO_NOTES), ALIVE_MS);
  try {
    await host.bring?.(wanted);
    return null;
  } catch (error) {
    if (isFault(error, 'content_unavailable')) {
      return { code: error.code, message: `${error.message}; nothing was changed` };
    }
    if (signal?.aborted) return null;
    throw error;
  } finally {
    clearInterval(alive);
  }
}

/** Milliseconds between signs of life while files come; the orchestrator waits for a minute. */
const ALIVE_MS = 10_000;

/** Returns the file that has to come for a resource; null for none. */
function sourceOf(resource: DesiredResource | undefined): SourceFile | null {
  const { source, url, sha256, key_url, key_sha256 } = resource?.body ?? {};
  return (
    wantedFile({ source: textOf(source), url: textOf(url), sha256: textOf(sha256) }) ??
    wantedFile({ url: textOf(key_url), sha256: textOf(key_sha256) })
  );
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

const STOPPED = {
  cancelled: 'the operation was cancelled before this resource',
  interrupted: 'the agent was stopped before this resource',
} as const;

async function isStale(
  content: RunContent,
  host: Host,
  { expect, clock, signal, ledger }: ApplyOptions,
): Promise<boolean> {
  if (expect == null) return false;
  const { observed } = await plan(content, host, { clock, signal, ledger });
  return observed !== null && observed !== expect;
}

async function look(run: Run, find: (examined: Examined) => Finding): Promise<void> {
  const perform = async (group: readonly Target[]) => {
    const since = run.now();
    const examined = await run.examine(group);
    await run.report(examined.map(find), since);
  };
  // Their order depends on the wanted resources.
  if (run.order.all.length > 0) return carryOut(run, perform);
  for (const window of windowsOf(run.desired)) {
    if (run.isStopped) return;
    await perform(window);
    await yieldToEventLoop();
  }
}

function* windowsOf(targets: readonly Target[]): Generator<readonly Target[]> {
  for (let at = 0; at < targets.length; at += WINDOW) yield targets.slice(at, at + WINDOW);
}

function predicted(examined: Examined): Finding {
  if ('finding' in examined) return examined.finding;
  const { target, change, existed } = examined.pending;
  const { action, changes, text, reason } = change;
  return { target, action, status: 'pending', changes, ...(text ? { text } : {}), reason, existed };
}

/** @param results those of the run, as they are reported */
function ended(run: Run, results: readonly RunItem[] = run.results): Outcome {
  const { stopCode } = run;
  const hasFailures = results.some(({ result }) => isBad(result.status));
  if (run.isComplete && !run.wasCut) return { end: hasFailures ? 'failed' : 'succeeded', results, error: null };
  const message = 'the agent was stopped in the middle of it';
  return { end: stopCode, results, error: stopCode === 'interrupted' ? { code: stopCode, message } : null };
}

/** Failures that are themselves a change of the machine. */
const CHANGED: ReadonlySet<FaultCode> = new Set([
  'wrong_type',
  'parent_missing',
  'unknown_owner',
  'unknown_group',
  'unit_missing',
  'unit_masked',
]);

/** Reports a failure such as a file that became a directory as drift instead of a failed check. */
function inDrift(finding: Finding): Finding {
  const { error, ...rest } = finding;
  if (!error || !CHANGED.has(error.code)) return finding;
  return { ...rest, action: 'update', status: 'pending', reason: error.message };
}

/** Arguments of `recover`: what an apply whose process died had announced and reported. */
interface Remains {
  /** Announced changes that may or may not have happened. */
  readonly intents: readonly Intent[];
  /** Positions of the resources whose results are known. */
  readonly reported: Iterable<number>;
}

/**
 * Returns the missing results of an interrupted apply and changes nothing: announced changes are reported as they are found
 * now, the rest as skipped.
 */
export async function recover(
  content: RunContent,
  host: Host,
  { intents, reported, ...options }: Remains & Pick<RunOptions, 'clock' | 'ledger'>,
): Promise<readonly RunItem[]> {
  const run = new Run(content, host, { ...options, purpose: 'drift', isIndependent: true });
  const known = new Set(reported);
  run.exclude(known);
  const open = new Map(intents.filter(({ index }) => !known.has(index)).map((intent) => [intent.index, intent]));
  for (const targets of [run.desired, run.order.all]) {
    const announced = targets.filter(({ index }) => open.has(index));
    host.removeTemporaries?.(
      announced.flatMap(({ kind, source }) => (kind?.family === 'path' ? [source.identity] : [])),
    );
    const since = run.now();
    const examined = await run.examine(announced);
    const findings = announced.map((target, at) => fateOf(target, examined[at], open.get(target.index)));
    await run.report(findings, since);
  }
  await run.skipRest({ code: 'interrupted', message: 'the agent was interrupted before this resource' });
  return run.results;
}

/** Actions that leave no visible trace. A trigger that was not answered stays owed. */
const MOMENTARY: ReadonlySet<Intent['action']> = new Set<Intent['action']>(['reload', 'restart']);

function unknownFate(target: Target, { action, existed }: Intent): Finding {
  const message = `the agent stopped in the middle of it; the next apply does the ${action} again`;
  return { ...failed(target, { code: 'interrupted', message }, existed), action };
}

function fateOf(target: Target, examined: Examined | undefined, intent: Intent | undefined): Finding {
  const existed = intent?.existed ?? null;
  if (intent && MOMENTARY.has(intent.action)) return unknownFate(target, intent);
  if (examined && 'finding' in examined && examined.finding.status === 'unchanged') {
    const reason = 'found done after the agent was interrupted';
    return { target, action: intent?.action ?? 'update', status: 'changed', reason, existed };
  }
  const what = isRemoval(target.source) ? 'removed' : 'in the desired state';
  const message = `the agent stopped in the middle of it; it is not ${what}`;
  const action = intent?.action ?? 'none';
  return { ...failed(target, { code: 'interrupted', message }, existed), action };
}
