/** The engine in a thread of its own, so that its synchronous file work never holds up the link. */
import { Worker } from 'node:worker_threads';
import { Fault, isFaultCode } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import { AGENT_DEFAULTS } from '../../settings/agent.js';
import type { RunContent } from '../../wire/parts.js';
import { isJournalWhole } from '../journal/journal-loss.js';
import { inspectJournal } from '../journal/read-journal.js';
import type { AgentSettingsFile } from '../settings-file.js';
import type {
  EngineReport,
  EngineSettings,
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
  /** As they are now; asked for each time a thread starts. */
  readonly settings?: () => EngineSettings;
  /** A thread that has nothing to do for so long ends and gives its memory back, in milliseconds. */
  readonly idleAfter?: number;
  /** A stop waits that long for the group that is being applied, in milliseconds. */
  readonly stopWithin?: number;
}

/** What is being applied may end first: a service manager that waits 90 s sees the agent end by itself. */
const STOP_WITHIN = 80_000;

const STANDARD: EngineSettings = { scriptTimeoutSecs: AGENT_DEFAULTS.script_timeout };

interface Question {
  readonly resolve: (runs: Inventory) => void;
  readonly reject: (fault: Fault) => void;
}

/** What the orchestrator has been told of a run that is under way. */
interface Told {
  readonly isApply: boolean;
  results: number;
}

export class EngineThread implements RunEngine {
  private readonly options: Required<EngineThreadOptions>;
  private readonly listeners = new Set<(report: EngineReport) => void>();
  private readonly running = new Map<string, Told>();
  private questions: Question[] = [];
  private worker: Worker | null = null;
  /** Settles when a thread that was told to end has ended; only then may another one open the journal. */
  private ending: Promise<void> | null = null;
  /** What came while a thread was ending. */
  private waiting: ToWorker[] = [];
  private idle: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(options: EngineThreadOptions) {
    this.options = { idleAfter: 60_000, stopWithin: STOP_WITHIN, settings: () => STANDARD, ...options };
  }

  subscribe(listener: (report: EngineReport) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Starts no thread while the journal is whole and holds nothing. */
  async inventory(): Promise<Inventory> {
    const isAsleep = this.worker === null && this.ending === null;
    const { dataDir } = this.options;
    if (isAsleep && isJournalWhole(dataDir) && inspectJournal(dataDir).unacknowledged === 0) return [];
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

  disconnected(): void {
    if (this.worker !== null || this.waiting.length > 0) this.post({ do: 'disconnected' });
  }

  /** The settings have changed; a thread that starts later asks for them. */
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
    worker.on('message', (message: FromWorker) => this.hear(message));
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

  /** Tells a thread to finish its group and end; one that does not is cut off, which its journal survives. */
  private end(worker: Worker): void {
    const deadline = setTimeout(() => {
      this.options.logger.error('the engine does not end in time; what it was doing is interrupted');
      void worker.terminate();
    }, this.options.stopWithin);
    this.worker = null;
    this.ending = new Promise<void>((resolve) => {
      worker.once('exit', () => {
        clearTimeout(deadline);
        this.ending = null;
        for (const message of this.waiting.splice(0)) this.post(message);
        resolve();
      });
    });
    worker.postMessage({ do: 'stop' } satisfies ToWorker);
  }

  private hear(message: FromWorker): void {
    this.startIdling();
    switch (message.is) {
      case 'report':
        this.tell(message.report);
        return;
      case 'inventory':
        this.questions.shift()?.resolve(message.runs);
        return;
      case 'log':
        this.options.logger[message.level](message.message, message.fields);
        return;
      case 'failed':
        this.failed(message);
    }
  }

  private tell(report: EngineReport): void {
    const told = this.running.get(report.run_id);
    if (told && report.type === 'run_results') {
      told.results = Math.max(told.results, report.from + report.items.length);
    }
    if (report.type === 'run_finished') this.running.delete(report.run_id);
    for (const listener of this.listeners) listener(report);
  }

  /** Nothing can be begun: whoever waits is told why. */
  private failed({ code, message, hint }: Extract<FromWorker, { is: 'failed' }>): void {
    const fault = new Fault(isFaultCode(code) ? code : 'internal', message, hint === null ? {} : { hint });
    this.options.logger.error('the engine cannot work', { reason: message, hint });
    this.answerNobody(fault);
    for (const runId of [...this.running.keys()]) this.abandon(runId, fault);
  }

  /**
   * A thread that ends by itself has broken down. Plans and checks are lost; an apply is in the journal, so another
   * thread looks at it and reports.
   */
  private exited(worker: Worker): void {
    if (this.worker !== worker) return;
    this.worker = null;
    const fault = new Fault('interrupted', 'the engine of the agent broke down');
    this.answerNobody(fault);
    const applies = [...this.running].filter(([, { isApply }]) => isApply).map(([runId]) => runId);
    for (const [runId, { isApply }] of [...this.running]) if (!isApply) this.abandon(runId, fault);
    if (applies.length > 0) void this.recover(applies, fault);
  }

  /** An apply that broke the engine before it was in the journal is known to nobody else. */
  private async recover(applies: readonly string[], fault: Fault): Promise<void> {
    try {
      const known = new Set((await this.inventory()).map(({ run_id }) => run_id));
      for (const runId of applies) if (!known.has(runId)) this.abandon(runId, fault);
    } catch (error) {
      const reason = error instanceof Fault ? error : fault;
      for (const runId of applies) this.abandon(runId, reason);
    }
  }

  private answerNobody(fault: Fault): void {
    for (const { reject } of this.questions.splice(0)) reject(fault);
  }

  private abandon(runId: string, { code, message }: Fault): void {
    const told = this.running.get(runId);
    if (!told) return;
    const error = { code, message };
    this.tell({
      type: 'run_finished',
      run_id: runId,
      end: 'interrupted',
      results: told.results,
      observed: null,
      error,
    });
  }
}

/** The engine that `orch agent` runs with. */
export interface CreateEngineOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  readonly file: AgentSettingsFile;
}

/** Takes over settings as they change. */
export function createEngine({ dataDir, logger, file }: CreateEngineOptions): RunEngine {
  const settings = () => ({ scriptTimeoutSecs: file.settings.script_timeout });
  const engine = new EngineThread({ dataDir, logger, settings });
  file.subscribe(() => engine.configure());
  return engine;
}
