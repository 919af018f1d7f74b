/** Runs the engine in a worker thread, so that its synchronous file work never blocks the link. */

import { Worker } from 'node:worker_threads';
import { Fault, isFault, isFaultCode, messageOf } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import type { SourceFile } from '../../resources/host.js';
import { countResults } from '../../resources/run-results.js';
import { AGENT_DEFAULTS } from '../../settings/agent.js';
import { garbageCollector } from '../../terminal/young-memory.js';
import type { RunContent } from '../../wire/parts.js';
import type { FetchedContent } from '../content/content-requests.js';
import { isJournalWhole } from '../journal/journal-loss.js';
import { inspectJournal } from '../journal/read-journal.js';
import type { AgentSettingsFile } from '../settings-file.js';
import { hasSnapshot } from '../snapshot/snapshot-record.js';
import type {
  EngineReport,
  EngineSettings,
  FetchContent,
  FromWorker,
  Inventory,
  RunEngine,
  RunHead,
  ToWorker,
  WorkerData,
} from './run-engine.js';

export interface EngineThreadOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  /** Returns the current settings; called each time a thread starts. */
  readonly settings?: () => EngineSettings;
  /** Milliseconds after which an idle thread ends and frees its memory. */
  readonly idleAfter?: number;
  /** Milliseconds for which a stop waits for the group in progress. */
  readonly stopTimeoutMs?: number;
}

/** Shorter than the 90 s of service managers, so that the agent ends by itself after its group. */
const STOP_WITHIN = 80_000;

const STANDARD: EngineSettings = { scriptTimeoutSecs: AGENT_DEFAULTS.script_timeout };

interface Question {
  readonly resolve: (runs: Inventory) => void;
  readonly reject: (fault: Fault) => void;
}

/** The reported part of a run in progress. */
interface ReportedRun {
  readonly isApply: boolean;
  results: number;
}

export class EngineThread implements RunEngine {
  private readonly options: Required<EngineThreadOptions>;
  private readonly listeners = new Set<(report: EngineReport) => void>();
  private readonly running = new Map<string, ReportedRun>();
  private questions: Question[] = [];
  private worker: Worker | null = null;
  /** Settles when a stopping thread has ended; only then may another one open the journal. */
  private ending: Promise<void> | null = null;
  /** Messages that arrived while a thread was ending. */
  private waiting: ToWorker[] = [];
  private idle: NodeJS.Timeout | undefined;
  private isStopped = false;
  private fetch: FetchContent | null = null;

  constructor(options: EngineThreadOptions) {
    this.options = { idleAfter: 60_000, stopTimeoutMs: STOP_WITHIN, settings: () => STANDARD, ...options };
  }

  subscribe(listener: (report: EngineReport) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  setFetch(fetch: FetchContent): void {
    this.fetch = fetch;
  }

  /** Starts no thread while the journal is intact and empty, and no snapshot may have to be restored. */
  async inventory(): Promise<Inventory> {
    const isAsleep = this.worker === null && this.ending === null;
    const { dataDir } = this.options;
    const isQuiet = isAsleep && isJournalWhole(dataDir) && !hasSnapshot(dataDir);
    if (isQuiet && inspectJournal(dataDir).unacknowledged === 0) return [];
    return new Promise((resolve, reject) => {
      this.questions.push({ resolve, reject });
      this.post({ do: 'inventory' });
    });
  }

  begin(head: RunHead, content: RunContent): void {
    if (!this.running.has(head.run_id)) this.running.set(head.run_id, { isApply: head.mode === 'apply', results: 0 });
    this.post({ do: 'begin', head, content });
  }

  cancel(runId: string): void {
    this.post({ do: 'cancel', runId });
  }

  resume(runId: string, from: number): void {
    this.post({ do: 'resume', runId, from });
  }

  acknowledge(runId: string): void {
    this.post({ do: 'acknowledge', runId });
  }

  confirmed(runId: string): void {
    this.post({ do: 'confirmed', runId });
  }

  reached(): void {
    if (this.worker !== null) this.post({ do: 'reached' });
  }

  unreached(reason: string): void {
    if (this.running.size > 0) this.post({ do: 'unreached', reason });
  }

  disconnected(): void {
    if (this.worker !== null || this.waiting.length > 0) this.post({ do: 'disconnected' });
  }

  /** Sends changed settings to the running thread; a later thread asks for them. */
  configure(): void {
    if (this.worker !== null) this.post({ do: 'settings', settings: this.options.settings() });
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.idle);
    this.waiting = [];
    if (this.worker !== null) this.end(this.worker);
    await this.ending;
  }

  private post(message: ToWorker): void {
    if (this.isStopped) return;
    if (this.ending !== null) this.waiting.push(message);
    else this.deliver(message);
  }

  private deliver(message: ToWorker): void {
    this.worker ??= this.start();
    this.worker.postMessage(message);
    this.startIdling();
  }

  private start(): Worker {
    const workerData: WorkerData = { dataDir: this.options.dataDir, settings: this.options.settings() };
    const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData });
    worker.on('message', (message: FromWorker) => this.receive(message));
    worker.on('error', (error) =>
      this.options.logger.error('the engine broke down', { reason: error.message, stack: error.stack }),
    );
    worker.on('exit', () => this.exited(worker));
    return worker;
  }

  private startIdling(): void {
    clearTimeout(this.idle);
    this.idle = setTimeout(() => {
      const isBusy = this.running.size > 0 || this.questions.length > 0;
      if (this.worker !== null && !isBusy) this.end(this.worker);
    }, this.options.idleAfter).unref();
  }

  /** Orders a thread to finish its group and end. A thread that does not is terminated, which the journal survives. */
  private end(worker: Worker): void {
    const deadline = setTimeout(() => {
      this.options.logger.error('the engine does not end in time; what it was doing is interrupted');
      void worker.terminate();
    }, this.options.stopTimeoutMs);
    this.worker = null;
    this.ending = new Promise<void>((resolve) => {
      worker.once('exit', () => {
        clearTimeout(deadline);
        this.ending = null;
        // V8 would keep what the messages of a run took until much more is allocated, in an idle agent for days. Serves the
        // benchmark row "agent: memory 80 s after applying 10,000 files".
        setImmediate(garbageCollector());
        for (const message of this.waiting.splice(0)) this.post(message);
        resolve();
      });
    });
    worker.postMessage({ do: 'stop' } satisfies ToWorker);
  }

  private receive(message: FromWorker): void {
    this.startIdling();
    switch (message.is) {
      case 'report':
        this.report(message.report);
        return;
      case 'inventory':
        this.questions.shift()?.resolve(message.runs);
        return;
      case 'wanted':
        void this.bring(message.file);
        return;
      case 'log':
        this.options.logger[message.level](message.message, message.fields);
        return;
      case 'failed':
        this.failed(message);
    }
  }

  /** Fetches a file and answers the engine. A thread that has ended meanwhile needs none. */
  private async bring(file: SourceFile): Promise<void> {
    const { worker, fetch } = this;
    const { sha256 } = file;
    let failure: FetchedContent = null;
    try {
      if (fetch === null) throw new Fault('content_unavailable', 'the agent has no orchestrator');
      await fetch(file);
    } catch (error) {
      failure = { code: isFault(error) ? error.code : 'internal', message: messageOf(error) };
    }
    this.startIdling();
    worker?.postMessage({ do: 'fetched', sha256, failure } satisfies ToWorker);
  }

  private report(report: EngineReport): void {
    const progress = this.running.get(report.run_id);
    // The wait for a confirmation goes on after a restart of the agent.
    if (!progress && report.type === 'run_awaiting') this.running.set(report.run_id, { isApply: true, results: 0 });
    if (progress && report.type === 'run_results') {
      progress.results = Math.max(progress.results, report.from + countResults(report.items));
    }
    if (report.type === 'run_finished') this.running.delete(report.run_id);
    for (const listener of this.listeners) listener(report);
  }

  /** Rejects all pending questions and runs, because the engine cannot start. */
  private failed({ code, message, hint }: Extract<FromWorker, { is: 'failed' }>): void {
    const fault = new Fault(isFaultCode(code) ? code : 'internal', message, hint === null ? {} : { hint });
    this.options.logger.error('the engine cannot work', { reason: message, hint });
    this.rejectQuestions(fault);
    for (const runId of [...this.running.keys()]) this.abandon(runId, fault);
  }

  /**
   * Handles a thread that ended by itself: it crashed. Plans and checks are lost; applies are in the journal, so another
   * thread recovers and reports them.
   */
  private exited(worker: Worker): void {
    if (this.worker !== worker) return;
    this.worker = null;
    const fault = new Fault('interrupted', 'the engine of the agent broke down');
    this.rejectQuestions(fault);
    const applies = [...this.running].filter(([, { isApply }]) => isApply).map(([runId]) => runId);
    for (const [runId, { isApply }] of [...this.running]) if (!isApply) this.abandon(runId, fault);
    if (applies.length > 0) void this.recover(applies, fault);
  }

  /** Reports applies that crashed the engine before they reached the journal as interrupted. */
  private async recover(applies: readonly string[], fault: Fault): Promise<void> {
    try {
      const known = new Set((await this.inventory()).map(({ run_id }) => run_id));
      for (const runId of applies) if (!known.has(runId)) this.abandon(runId, fault);
    } catch (error) {
      const reason = error instanceof Fault ? error : fault;
      for (const runId of applies) this.abandon(runId, reason);
    }
  }

  private rejectQuestions(fault: Fault): void {
    for (const { reject } of this.questions.splice(0)) reject(fault);
  }

  private abandon(runId: string, { code, message }: Fault): void {
    const progress = this.running.get(runId);
    if (!progress) return;
    const error = { code, message };
    this.report({
      type: 'run_finished',
      run_id: runId,
      end: 'interrupted',
      results: progress.results,
      observed: null,
      error,
    });
  }
}

/** Creates the engine of `orch agent`, which follows changes of the settings file. */
export function createEngine({
  dataDir,
  logger,
  file,
}: Pick<EngineThreadOptions, 'dataDir' | 'logger'> & { readonly file: AgentSettingsFile }): RunEngine {
  const settings = () => ({ scriptTimeoutSecs: file.settings.script_timeout });
  const engine = new EngineThread({ dataDir, logger, settings });
  file.subscribe(() => engine.configure());
  return engine;
}
