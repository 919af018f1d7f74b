/** Carries out one apply: each change is in the journal before it is made, and each result before it is reported. */
import type { Clock } from '../../kernel/clock.js';
import { Fault, type FaultCode, isFault, messageOf } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import { type CheckReport, checkResults, type DesiredCheck, verifyError } from '../../resources/checks/check.js';
import type { Host } from '../../resources/host.js';
import { countResults, shortened } from '../../resources/run-results.js';
import type { RunEntry, RunItem } from '../../wire/messages.js';
import type { Notes } from '../converge/ledger.js';
import { apply, type Outcome } from '../converge.js';
import type { JournalledRun, RunError } from '../journal/journal-state.js';
import type { Journal } from '../journal.js';
import { runChecks, stopOf } from '../verify/run-checks.js';
import type { EngineReport } from './run-engine.js';

interface ApplyRunOptions {
  readonly run: JournalledRun;
  readonly journal: Journal;
  readonly createHost: (signal: AbortSignal) => Host;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly expect: string | null;
  /** True to report unchanged results in short. */
  readonly isShort: boolean;
  readonly report: (...reports: readonly EngineReport[]) => void;
}

/** Maximum milliseconds for which results without a change wait to be synced and reported with others. */
const PATIENCE = 200;

export class ApplyRun {
  private readonly options: ApplyRunOptions;
  private reported = 0;
  private lastSync: number;

  constructor(options: ApplyRunOptions) {
    this.options = options;
    this.lastSync = options.clock.monotonic();
  }

  /** Carries out the apply, and reports its results and its end. */
  async run(): Promise<void> {
    const { run, journal, createHost, clock, signal, expect } = this.options;
    const outcome = await this.outcome(() =>
      apply(run.content, createHost(signal), {
        clock,
        signal,
        expect,
        ledger: journal,
        runId: run.id,
        intend: (intents, precautions) => {
          journal.intend(run.id, intents, precautions);
          this.flush();
        },
        onResults: (items, notes) => this.take(items, notes),
      }),
    );
    this.finish(await this.verified(outcome));
  }

  /** Runs the health checks after a successful apply. */
  private async verified(outcome: Ended): Promise<Ended> {
    const { run, createHost, clock, signal, report: tell } = this.options;
    const { verify = [] } = run.content;
    if (outcome.end !== 'succeeded' || verify.length === 0) return outcome;
    // The results are final, and the checks may take minutes.
    this.trySync();
    const onAlive = () => tell({ type: 'run_accepted', run_id: run.id });
    const checks = await runChecks(verify, { clock, signal, createHost, onAlive });
    return { ...verifiedEnd(verify, checks, signal), checks };
  }

  private async outcome(work: () => Promise<Outcome>): Promise<Ended> {
    try {
      return await work();
    } catch (error) {
      this.options.logger.error('an apply failed as a whole', { run_id: this.options.run.id, error });
      const code = isFault(error) ? error.code : 'internal';
      return { end: 'failed', error: { code, message: messageOf(error) } };
    }
  }

  /** Records results. Results without a change are synced with the next change, or after `PATIENCE`. */
  private take(items: readonly RunItem[], notes: Notes): void {
    const { run, journal, clock } = this.options;
    journal.record(run.id, items, notes);
    const hasChanged = notes.paid.length > 0 || items.some(({ result }) => result.status !== 'unchanged');
    if (hasChanged || clock.monotonic() - this.lastSync > PATIENCE) this.trySync();
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

  private finish({ end, error, checks }: Ended): void {
    const { run, journal, report: tell, logger } = this.options;
    journal.end(run.id, end, error && boundedError(error.code, error.message), checks);
    try {
      journal.sync();
    } catch (cause) {
      // The end is kept in memory and written as soon as the disk accepts it.
      logger.error('the end of an apply is not in the journal', { run_id: run.id, reason: messageOf(cause) });
      journal.assumeWritten();
    }
    this.flush();
    const ended = endReport(run);
    if (ended !== null) tell(ended);
  }

  /** Reports the results that the journal holds and the orchestrator has not received. */
  private flush(): void {
    const { run, report: tell, clock, isShort } = this.options;
    this.lastSync = clock.monotonic();
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

/** Returns the end of a run after its health checks: also a stopped run has applied all of its resources. */
export function verifiedEnd(
  checks: readonly DesiredCheck[],
  reports: readonly CheckReport[],
  signal: AbortSignal,
): Pick<Ended, 'end' | 'error'> {
  const stop = stopOf(signal);
  if (stop === 'cancelled') return { end: stop, error: null };
  const message = 'the agent was stopped before its health checks had ended';
  if (stop === 'interrupted') return { end: stop, error: { code: stop, message } };
  const error = verifyError(checkResults(checks, reports));
  return { end: error === null ? 'succeeded' : 'failed', error };
}

/** Returns the report of the end of an apply; null while it runs. */
export function endReport({ id, end, items, error, checks }: JournalledRun): EngineReport | null {
  if (end === null) return null;
  const results = checks === undefined ? {} : { checks: [...checks] };
  return { type: 'run_finished', run_id: id, end, results: items.length, observed: null, error, ...results };
}

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
