/** Executes runs one after the other: plans and drift checks from memory, applies through the journal. */
import type { Clock } from '../../kernel/clock.js';
import { type FaultCode, isFault, messageOf } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import type { Host } from '../../resources/host.js';
import { shortened } from '../../resources/run-results.js';
import type { RunEnd, RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import { notesOfNewProcess } from '../converge/ledger-updates.js';
import { type Compared, drift, type Outcome, type Planned, plan, recover } from '../converge.js';
import type { HeldPrograms } from '../host/held-programs.js';
import type { Aftermath, JournalledRun, RunError } from '../journal/journal-state.js';
import type { Journal } from '../journal.js';
import { NO_GUARD, type SnapshotGuard } from '../snapshot/snapshot-guard.js';
import type { SnapshotRecord } from '../snapshot/snapshot-record.js';
import { isOpen, leftOf, Undoing, type UndoingOptions, undone } from '../snapshot/undoing.js';
import { verifiedEnd } from '../verify/verified-end.js';
import { ApplyRun, boundedError, endReport, resultMessages, stopFault } from './apply-run.js';
import type { EngineReport, Inventory, RunEngine, RunHead } from './run-engine.js';

interface EngineOptions {
  readonly journal: Journal;
  /** Protects snapshots while the agent may be unable to [default: nothing does]. */
  readonly guard?: SnapshotGuard;
  /** Returns the free bytes of the file system of a directory [default: the system's]. */
  readonly freeBytes?: UndoingOptions['freeBytes'];
  readonly settleMs?: UndoingOptions['settleMs'];
  /** Creates a new view of the machine for each run. */
  readonly createHost: (signal?: AbortSignal, held?: HeldPrograms) => Host;
  /** Programs with which applies are undone, whatever becomes of their files. */
  readonly held?: HeldPrograms;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A run in progress or in the queue. */
interface Active {
  readonly isApply: boolean;
  readonly stopper: AbortController;
}

/** The end of an apply that an earlier process has begun. */
interface RecoveredEnd extends Aftermath {
  readonly end: RunEnd;
  readonly error: RunError | null;
}

/** Maximum queued plans and drift checks; the orchestrator sends one at a time. */
const QUEUE = 16;

export class Engine implements RunEngine {
  private readonly options: EngineOptions;
  private readonly listeners = new Set<(report: EngineReport) => void>();
  private readonly active = new Map<string, Active>();
  private readonly undoing: Undoing;
  private readonly recovered: Promise<void>;
  /** The wait for a confirmation that an earlier process has begun. */
  private resumed: (() => Promise<void>) | null = null;
  /** Settles when every run so far has ended; each run waits for the one before. */
  private tail: Promise<void>;
  private isStopping = false;

  /** Starts by recovering the applies whose process died. */
  constructor(options: EngineOptions) {
    this.options = options;
    this.undoing = new Undoing({
      guard: NO_GUARD,
      ...options,
      dataDir: options.journal.directory,
      report: (report) => this.report(report),
    });
    this.recovered = this.recoverAll();
    this.tail = this.recovered.then(() => this.resumed?.());
  }

  subscribe(listener: (report: EngineReport) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async inventory(): Promise<Inventory> {
    await this.recovered;
    return this.options.journal.runs.map(({ id, end, items }) => ({
      run_id: id,
      state: end === null ? 'running' : 'finished',
      results: items.length,
    }));
  }

  begin(head: RunHead, content: RunContent): void {
    const known = this.options.journal.find(head.run_id);
    if (known) this.reportAgain(known);
    else if (!this.active.has(head.run_id)) this.startRun(head, content);
  }

  cancel(runId: string): void {
    this.active.get(runId)?.stopper.abort(stopFault('cancelled'));
  }

  resume(runId: string, from: number): void {
    const run = this.options.journal.find(runId);
    if (run) this.reportFrom(run, from);
  }

  acknowledge(runId: string): void {
    this.options.journal.acknowledge(runId);
  }

  confirmed(runId: string): void {
    this.undoing.confirmed(runId);
  }

  reached(): void {
    this.undoing.reached();
  }

  unreached(reason: string): void {
    this.undoing.unreached(reason);
  }

  disconnected(): void {
    this.endObservations();
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    for (const { stopper } of this.active.values()) stopper.abort(stopFault('interrupted'));
    await this.tail;
    this.options.journal.close();
  }

  private startRun(head: RunHead, content: RunContent): void {
    const refusal = this.refusalOf(head);
    if (refusal) this.refuse(head.run_id, ...refusal);
    else if (head.mode === 'apply') this.beginApply(head, content);
    else if (head.mode === 'verify')
      this.enqueue(head.run_id, false, (signal) => this.verify(head.run_id, content, signal));
    else this.enqueue(head.run_id, false, (signal) => this.observe(head, content, signal));
  }

  private refusalOf({ mode, epoch, generation }: RunHead): readonly [FaultCode, string] | null {
    if (this.isStopping) return ['interrupted', 'the agent is stopping'];
    const runs = [...this.active.values()];
    if (runs.some(({ isApply }) => isApply)) return ['operation_in_progress', 'the agent is busy with an apply'];
    if (mode !== 'apply') return runs.length < QUEUE ? null : ['operation_in_progress', 'too many plans are waiting'];
    if (this.options.journal.isNewer(epoch, generation)) return null;
    return [
      'stale_generation',
      'the agent has seen a newer operation, so the store of the orchestrator is an old one: restore a backup with "orch serve restore", or start once with "orch serve --new-epoch"',
    ];
  }

  /** Stores the apply in the journal before it is reported and before it ends running plans. */
  private beginApply(head: RunHead, content: RunContent): void {
    const { journal } = this.options;
    const { run_id: id, epoch, generation } = head;
    try {
      journal.accept({ id, epoch, generation, content });
    } catch (error) {
      this.refuse(id, isFault(error) ? error.code : 'internal', messageOf(error));
      return;
    }
    const run = journal.find(id);
    if (!run) throw new Error('what was accepted is in the journal');
    this.report({ type: 'run_accepted', run_id: id });
    this.endObservations();
    this.enqueue(id, true, (signal) => this.applyRun(run, signal, head).run(head));
  }

  private applyRun(run: JournalledRun, signal: AbortSignal, head: Partial<RunHead> = {}): ApplyRun {
    const { undoing } = this;
    return new ApplyRun({
      ...this.options,
      run,
      undoing,
      signal,
      expect: head.expect ?? null,
      mayPurge: head.may_purge ?? undefined,
      isShort: head.short_results === true,
      onEnded: () => this.active.delete(run.id),
      report: (...reports) => this.report(...reports),
    });
  }

  private enqueue(runId: string, isApply: boolean, work: (signal: AbortSignal) => Promise<void>): void {
    const stopper = new AbortController();
    this.active.set(runId, { isApply, stopper });
    this.tail = this.tail.then(() => this.attempt(runId, () => work(stopper.signal)));
  }

  /** Runs the work of one run; its failure does not stop the engine. */
  private async attempt(runId: string, work: () => Promise<void>): Promise<void> {
    const { logger, journal } = this.options;
    try {
      await work();
    } catch (error) {
      if (this.isStopping && isFault(error, 'interrupted')) {
        logger.warn('the agent stops in the middle of an apply', { run_id: runId, reason: error.message });
        return;
      }
      logger.error('a run broke down', { run_id: runId, error });
      const run = journal.find(runId);
      // The next process ends an apply of an agent that stops.
      if (run?.end === null && !this.isStopping) await this.endBroken(run, error);
    } finally {
      this.active.delete(runId);
    }
  }

  /** Ends an apply that broke down, so that the next one may begin; one that has to be confirmed is undone. Never throws. */
  private async endBroken(run: JournalledRun, cause: unknown): Promise<void> {
    const { undoing } = this;
    const { logger } = this.options;
    try {
      this.journalEnd(run, await this.brokenEnd(run, cause));
      const record = undoing.read();
      if (record?.run_id === run.id) await undoing.close();
      this.active.delete(run.id);
      this.reportEnd(run);
    } catch (error) {
      logger.error('an apply that broke down cannot be ended', { run_id: run.id, error });
    }
  }

  private async brokenEnd({ id }: JournalledRun, cause: unknown): Promise<RecoveredEnd> {
    const why = `it broke down: ${messageOf(cause)}`;
    const record = this.undoing.read();
    if (record?.run_id === id && record.state === 'restored') return undone(record.why ?? why, record.restored);
    if (record?.run_id === id && isOpen(record)) return this.undoing.undo(record, record.why ?? why.slice(0, 2_048));
    const error = boundedError(isFault(cause) ? cause.code : 'internal', messageOf(cause));
    return { end: 'failed', error, restored: null };
  }

  private async observe(head: RunHead, content: RunContent, signal: AbortSignal): Promise<void> {
    const { run_id: runId, mode } = head;
    this.report({ type: 'run_accepted', run_id: runId });
    let results = 0;
    const onResults = (items: readonly RunItem[]) => {
      const entries = head.short_results ? shortened(items, content.resources) : items;
      this.report(...resultMessages(runId, results, entries));
      results += items.length;
    };
    const { clock, createHost, journal: ledger } = this.options;
    const look = mode === 'plan' ? plan : drift;
    const outcome = await this.outcomeOf(runId, () =>
      look(content, createHost(signal), { clock, signal, onResults, ledger }),
    );
    const error = outcome.error && boundedError(outcome.error.code, outcome.error.message);
    const observed = 'observed' in outcome ? outcome.observed : null;
    const traced = 'traces' in outcome ? { traces: [...outcome.traces], clock: clock.now() } : {};
    this.report({ type: 'run_finished', run_id: runId, end: outcome.end, results, observed, error, ...traced });
  }

  /** Runs health checks alone, and reports their results. */
  private async verify(runId: string, content: RunContent, signal: AbortSignal): Promise<void> {
    const { verify = [] } = content;
    const { clock, createHost } = this.options;
    const onAlive = () => this.report({ type: 'run_accepted', run_id: runId });
    onAlive();
    const { runChecks } = await import('../verify/run-checks.js');
    const checks = [...(await runChecks(content, { clock, signal, createHost, onAlive }))];
    const { end, error } = verifiedEnd(verify, checks, signal);
    this.report({ type: 'run_finished', run_id: runId, end, results: 0, observed: null, error, checks });
  }

  private async outcomeOf(
    runId: string,
    look: () => Promise<Planned | Compared>,
  ): Promise<Omit<Planned, 'results'> | Omit<Compared, 'results'> | Omit<Outcome, 'results'>> {
    try {
      return await look();
    } catch (error) {
      this.options.logger.error('a run failed as a whole', { run_id: runId, error });
      return { end: 'failed', error: { code: isFault(error) ? error.code : 'internal', message: messageOf(error) } };
    }
  }

  private endObservations(): void {
    for (const { isApply, stopper } of this.active.values()) if (!isApply) stopper.abort(stopFault('cancelled'));
  }

  private async recoverAll(): Promise<void> {
    this.options.journal.recordNotes(notesOfNewProcess(this.options.journal));
    const record = this.undoing.read();
    for (const run of this.options.journal.runs) {
      if (run.end !== null) continue;
      if (record?.run_id === run.id && record.confirm_secs !== null) await this.recoverUndoable(run, record);
      else await this.recoverRun(run);
    }
    if (record === null || this.resumed !== null) return;
    // The journal was lost, so nothing else will end this apply.
    if (isOpen(this.undoing.read() ?? record)) await this.undoing.undo(record, 'the agent has lost its journal');
    await this.undoing.close();
  }

  /** Goes on with an apply that has to be confirmed: waits for the rest of its time, or undoes it. */
  private async recoverUndoable(run: JournalledRun, record: SnapshotRecord): Promise<void> {
    const { undoing } = this;
    const { journal } = this.options;
    // A complete apply may lack results too: damage at the end of the journal looks like a write cut off by a crash.
    journal.record(run.id, await this.missingItems(run));
    if (record.state === 'awaiting' && leftOf(record) > 0) {
      const stopper = new AbortController();
      this.active.set(run.id, { isApply: true, stopper });
      this.syncJournal();
      const work = () => this.applyRun(run, stopper.signal).resume(record);
      this.resumed = () => this.attempt(run.id, work);
      return;
    }
    if (record.state === 'confirmed') {
      const { checks } = record;
      return this.endRecovered(run, { end: 'succeeded', error: null, restored: null, checks });
    }
    if (record.state === 'restored') {
      return this.endRecovered(run, undone(record.why ?? 'it was not confirmed', record.restored));
    }
    const isLate = record.state === 'awaiting';
    const why = isLate ? 'the agent was restarted and the time was over' : 'the agent went down in the middle of it';
    return this.endRecovered(run, await undoing.undo(record, record.why ?? why));
  }

  /** Completes an interrupted apply without repeating anything: announced changes are observed, the rest was not begun. */
  private async recoverRun(run: JournalledRun): Promise<void> {
    const { journal, logger } = this.options;
    logger.warn('an apply was interrupted', { run_id: run.id, results: run.items.length });
    journal.record(run.id, await this.missingItems(run));
    const unverified = (run.content.verify ?? []).length > 0 ? '; its health checks did not run to the end' : '';
    const error = boundedError('interrupted', `the agent went down in the middle of it${unverified}`);
    this.endRecovered(run, { end: 'interrupted', error, restored: null });
  }

  private endRecovered(run: JournalledRun, ended: RecoveredEnd): void {
    this.journalEnd(run, ended);
    this.reportEnd(run);
  }

  private journalEnd(run: JournalledRun, { end, error, ...after }: RecoveredEnd): void {
    this.options.journal.end(run.id, end, error, after);
    this.syncJournal();
  }

  /** Syncs the journal. Records that the disk refuses stay in memory until it accepts them. */
  private syncJournal(): void {
    const { journal, logger } = this.options;
    try {
      journal.sync();
    } catch (error) {
      logger.error('the journal cannot be written', { reason: messageOf(error) });
      journal.assumeWritten();
    }
  }

  private async missingItems({ id, content, intents, items }: JournalledRun): Promise<readonly RunItem[]> {
    const { createHost, clock, logger, journal: ledger } = this.options;
    const reported = items.map(({ index }) => index);
    try {
      return await recover(content, createHost(), { clock, ledger, intents, reported });
    } catch (error) {
      logger.error('an interrupted apply cannot be looked at', { run_id: id, error });
      return [];
    }
  }

  /** Reports a run again that was delivered a second time. */
  private reportAgain(run: JournalledRun): void {
    this.report({ type: 'run_accepted', run_id: run.id });
    this.reportFrom(run, 0);
  }

  private reportFrom(run: JournalledRun, from: number): void {
    this.report(...resultMessages(run.id, from, run.items.slice(from)));
    this.reportEnd(run);
  }

  private reportEnd(run: JournalledRun): void {
    const report = endReport(run);
    if (report !== null) this.report(report);
  }

  private refuse(runId: string, code: FaultCode, message: string): void {
    const error = boundedError(code, message);
    this.report({ type: 'run_finished', run_id: runId, end: 'refused', results: 0, observed: null, error });
  }

  private report(...reports: readonly EngineReport[]): void {
    for (const report of reports) for (const listener of this.listeners) listener(report);
  }
}
