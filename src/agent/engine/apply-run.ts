/** Carries out one apply: each change is in the journal before it is made, and each result before it is reported. */
import type { Clock } from '../../kernel/clock.js';
import { Fault, type FaultCode, isFault, messageOf } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import type { CheckReport } from '../../resources/checks/check.js';
import { commandFailure, exitedWith } from '../../resources/command.js';
import type { Host, RunStep } from '../../resources/host.js';
import { countResults, shortened } from '../../resources/run-results.js';
import type { RunEntry, RunItem } from '../../wire/messages.js';
import type { Intent } from '../converge/apply-group.js';
import type { Notes } from '../converge/ledger.js';
import { refusalOf } from '../converge/observations.js';
import { type Target, targetsOf } from '../converge/target.js';
import { apply, type Outcome, plan } from '../converge.js';
import { aftermathOf, type JournalledRun, type RunError } from '../journal/journal-state.js';
import type { Journal } from '../journal.js';
import { type BootTime, bootTime } from '../snapshot/boot-time.js';
import type { Doomed, Snapshot } from '../snapshot/snapshot.js';
import type { SnapshotRecord } from '../snapshot/snapshot-record.js';
import type { SettledEnd, Undoing } from '../snapshot/undoing.js';
import { endWithChecks, modulesWithoutChecks } from '../verify/verified-end.js';
import type { EngineReport, RunHead } from './run-engine.js';

interface ApplyRunOptions {
  readonly run: JournalledRun;
  readonly journal: Journal;
  readonly undoing: Undoing;
  readonly createHost: (signal: AbortSignal) => Host;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly expect: string | null;
  readonly mayPurge: number | undefined;
  /** True to report unchanged results in short. */
  readonly isShort: boolean;
  /** Called before the end is reported. */
  readonly onEnded: () => void;
  readonly report: (...reports: readonly EngineReport[]) => void;
}

/** Maximum milliseconds for which results without a change wait to be synced and reported with others. */
const PATIENCE = 200;
/** Milliseconds in which systemd begins a restart of the agent that it has accepted. */
const RESTART_WITHIN = 30_000;

/** Minimum milliseconds between signs of life while results are held back; the orchestrator waits for a minute. */
const ALIVE_MS = 10_000;

export class ApplyRun {
  private readonly options: ApplyRunOptions;
  private reported = 0;
  /** Steps that end the agent, which wait until everything else is done. */
  private deferred: readonly RunStep[] = [];
  private lastSync: number;
  private lastReport: number;

  constructor(options: ApplyRunOptions) {
    this.options = options;
    this.lastSync = options.clock.monotonic();
    this.lastReport = this.lastSync;
  }

  /** Carries out the apply, and reports its results and its end. One that has to be confirmed is undone without that. */
  async run(head: RunHead): Promise<void> {
    const { undoing } = this.options;
    const restored = head.restore == null ? null : await undoing.restoreKept(head.restore);
    let snapshot: Snapshot | null = null;
    let appliedAt = bootTime();
    const outcome = await this.outcome(async () => {
      try {
        snapshot = undoing.begin(head);
        if (snapshot !== null) await this.saveBefore(snapshot);
      } catch (error) {
        // Nothing was changed.
        return { end: 'refused', error: refusalOf(error, 'internal') };
      }
      const applied = await this.apply(snapshot);
      this.deferred = applied.deferred ?? [];
      appliedAt = bootTime();
      return this.verified(applied, head.confirm_secs ?? null);
    });
    await this.conclude(snapshot, { ...outcome, restored }, appliedAt);
  }

  /** Goes on waiting for the confirmation of an apply that an earlier process has carried out. */
  async resume(record: SnapshotRecord): Promise<void> {
    const { undoing, signal, run } = this.options;
    this.reported = run.items.length;
    const settled = await undoing.wait(record, signal, {
      end: 'succeeded',
      error: null,
      restored: null,
      checks: record.checks,
    });
    if (settled !== null) await this.finish(settled);
  }

  private apply(snapshot: Snapshot | null): Promise<Outcome> {
    const { run, journal, createHost, clock, signal, expect, mayPurge, undoing } = this.options;
    const targets = targetsOf(run.content, createHost(signal).platform, journal);
    return apply(run.content, createHost(signal), {
      clock,
      signal,
      expect,
      mayPurge,
      ledger: journal,
      runId: run.id,
      outputShownBy: `orch ops output ${run.id}`,
      intend: async (intents, precautions, purges) => {
        if (snapshot !== null) await undoing.save(snapshot, doomedOf(targets, intents), purges);
        journal.intend(run.id, intents, precautions);
        this.flush();
      },
      onResults: (items, notes) => this.take(items, notes),
    });
  }

  /** Saves what a plan says that the apply replaces, so that a disk without room is known before the first change. */
  private async saveBefore(snapshot: Snapshot): Promise<void> {
    const { run, journal, createHost, clock, signal, undoing } = this.options;
    const host = createHost(signal);
    const { results } = await plan(run.content, host, { clock, signal, ledger: journal });
    const pending = results
      .filter(({ result }) => result.status === 'pending')
      .map(({ index, result }) => ({ index, action: result.action }));
    await undoing.save(snapshot, doomedOf(targetsOf(run.content, host.platform, journal), pending));
  }

  /**
   * Runs the health checks of the modules without failures, at most until the time for the confirmation is over. A failed apply
   * that has to be confirmed is undone, so none runs.
   */
  private async verified(outcome: Outcome, confirmSecs: number | null): Promise<Ended> {
    const { run, createHost, clock, signal, report: tell } = this.options;
    const { verify = [] } = run.content;
    const without = modulesWithoutChecks(outcome, run.content);
    if (without === null || (outcome.end !== 'succeeded' && confirmSecs !== null)) return outcome;
    // The results are final, and the checks may take minutes.
    this.trySync();
    const onAlive = () => tell({ type: 'run_accepted', run_id: run.id });
    // Few runs have checks, which bring the HTTP client along.
    const { runChecks } = await import('../verify/run-checks.js');
    const limit = confirmSecs === null ? signal : AbortSignal.any([signal, AbortSignal.timeout(confirmSecs * 1000)]);
    const checks = await runChecks(run.content, { clock, signal: limit, createHost, without, onAlive });
    if (!limit.aborted || signal.aborted) return { ...endWithChecks(outcome, verify, checks, signal), checks };
    const message = `the health checks had not ended when the ${confirmSecs} s for the confirmation were over`;
    return { end: 'failed', error: { code: 'verify_failed', message }, checks };
  }

  private async conclude(snapshot: Snapshot | null, ended: SettledEnd, appliedAt: BootTime): Promise<void> {
    const { undoing, signal } = this.options;
    if (snapshot === null) return this.finish(ended);
    // After a crash, the next process finds all results.
    this.trySync();
    const settled = await undoing.settle(snapshot, { ...ended, appliedAt }, signal, () => this.carryOutDeferred());
    // The undo restarts what it has to.
    if (settled?.end === 'rolled_back') this.deferred = [];
    if (settled !== null) await this.finish(settled);
  }

  private async outcome(work: () => Promise<Ended>): Promise<Ended> {
    try {
      return await work();
    } catch (error) {
      // The agent stops. The next process finds out what has become of the apply.
      if (isFault(error, 'interrupted')) throw error;
      this.options.logger.error('an apply failed as a whole', { run_id: this.options.run.id, error });
      const code = isFault(error) ? error.code : 'internal';
      return { end: 'failed', error: { code, message: messageOf(error) } };
    }
  }

  /** Records results. Results without a change are synced with the next change, or after `PATIENCE`. */
  private take(items: readonly RunItem[], notes: Notes): void {
    const { run, journal, clock } = this.options;
    journal.record(run.id, items, notes);
    if (items.length === 0) this.showAlive();
    const hasChanged =
      notes.paid.length + notes.memos.length > 0 || items.some(({ result }) => result.status !== 'unchanged');
    if (hasChanged || clock.monotonic() - this.lastSync > PATIENCE) this.trySync();
  }

  /** Reports that the apply goes on although its results wait for its removals. */
  private showAlive(): void {
    const { run, clock, report: tell } = this.options;
    if (clock.monotonic() - this.lastReport < ALIVE_MS) return;
    this.lastReport = clock.monotonic();
    tell({ type: 'run_accepted', run_id: run.id });
  }

  /** Syncs the journal. Results that cannot be written wait; the next change cannot be announced then, so it does not begin. */
  private trySync(): void {
    try {
      this.options.journal.sync();
      this.flush();
    } catch (error) {
      this.options.logger.error('the journal cannot be written', { reason: messageOf(error) });
    }
  }

  /** Journals the end, clears a snapshot away, and reports the end once the next apply may begin. */
  private async finish({ end, error, ...after }: SettledEnd): Promise<void> {
    const { run, journal, report: tell, logger, undoing, onEnded } = this.options;
    journal.end(run.id, end, error && boundedError(error.code, error.message), after);
    let isKept = true;
    try {
      journal.sync();
    } catch (cause) {
      isKept = false;
      // The end is kept in memory and written as soon as the disk accepts it.
      logger.error('the end of an apply is not in the journal', { run_id: run.id, reason: messageOf(cause) });
      journal.assumeWritten();
    }
    this.flush();
    if (undoing.isUsed) await undoing.close();
    // The next process reports the end, so that the agent is back when the caller hears of it.
    if (isKept && (await this.carryOutDeferred()) && (await this.isStoppedSoon())) return;
    onEnded();
    const ended = endReport(run);
    if (ended !== null) tell(ended);
  }

  /** Carries out the steps that end the agent. Returns false when there are none, or when one fails; they stay owed then. */
  private async carryOutDeferred(): Promise<boolean> {
    const { run, createHost, signal, logger } = this.options;
    const steps = this.deferred;
    if (steps.length === 0) return false;
    this.deferred = [];
    const host = createHost(signal);
    for (const { command, items = [] } of steps) {
      const result = await host.run({ ...command, argv: [...command.argv, ...items] });
      if (exitedWith(result, 0)) continue;
      const { message } = commandFailure(command, result);
      logger.error('the agent cannot restart itself; the next apply tries again', { run_id: run.id, reason: message });
      return false;
    }
    return true;
  }

  /** Resolves with true once the agent is told to stop, and with false if that does not come. */
  private async isStoppedSoon(): Promise<boolean> {
    const { signal } = this.options;
    const over = AbortSignal.timeout(RESTART_WITHIN);
    await new Promise<void>((resolve) => {
      for (const one of [signal, over]) {
        if (one.aborted) resolve();
        else one.addEventListener('abort', () => resolve(), { once: true });
      }
    });
    return isFault(signal.reason, 'interrupted');
  }

  /** Reports the results that the journal holds and the orchestrator has not received. */
  private flush(): void {
    const { run, report: tell, clock, isShort } = this.options;
    this.lastSync = clock.monotonic();
    this.lastReport = this.lastSync;
    const items = run.items.slice(this.reported);
    const entries = isShort ? shortened(items, run.content.resources) : items;
    tell(...resultMessages(run.id, this.reported, entries));
    this.reported = run.items.length;
  }
}

/** How an apply ended, with the results of its health checks if it came to them. */
interface Ended extends Pick<Outcome, 'end' | 'error'> {
  readonly checks?: readonly CheckReport[];
}

/** Returns the report of the end of an apply; null while it runs. */
export function endReport(run: JournalledRun): EngineReport | null {
  const { id, end, items, error } = run;
  if (end === null) return null;
  const head = { type: 'run_finished', run_id: id, end, results: items.length } as const;
  return { ...head, observed: null, error, ...aftermathOf(run) };
}

/** Returns the resources at these positions. */
const doomedOf = (
  targets: readonly Target[],
  intents: readonly Pick<Intent, 'index' | 'action'>[],
): readonly Doomed[] =>
  intents.flatMap(({ index, action }) => {
    const target = targets[index];
    return target === undefined ? [] : [{ target, action }];
  });

/** Cuts an error's message to the limit of the link. */
export const boundedError = (code: FaultCode, message: string): RunError => ({
  code,
  message: message.slice(0, 4_096),
});

/** Returns the Fault that stops a run at its next boundary. */
export const stopFault = (code: 'cancelled' | 'interrupted'): Fault =>
  new Fault(code, code === 'cancelled' ? 'the operation was cancelled' : 'the agent stops');

/** Maximum characters of JSON in one message, well below the frame limit; a larger result travels alone. */
const MESSAGE_SIZE = 256 * 1024;
const MESSAGE_ITEMS = 1_000;

/** @param from position of the first item in the sequence of results */
export function resultMessages(runId: string, from: number, entries: readonly RunEntry[]): readonly EngineReport[] {
  const messages: EngineReport[] = [];
  let batch: RunEntry[] = [];
  let size = 0;
  let start = from;
  const flush = () => {
    if (batch.length > 0) messages.push({ type: 'run_results', run_id: runId, from: start, items: batch });
    start += countResults(batch);
    batch = [];
    size = 0;
  };
  for (const entry of entries) {
    const length = JSON.stringify(entry).length;
    if (size + length > MESSAGE_SIZE || batch.length >= MESSAGE_ITEMS) flush();
    batch.push(entry);
    size += length;
  }
  flush();
  return messages;
}
