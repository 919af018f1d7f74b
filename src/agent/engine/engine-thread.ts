/** The engine in a thread of its own, so that its synchronous file work never holds up the link. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Fault } from '../../kernel/fault.js';
import { isFaultCode } from '../../kernel/fault-code.js';
import type { Logger } from '../../kernel/logger.js';
import type { AgentMessageOf, OrchestratorMessageOf } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import type { EngineReport, RunEngine } from './run-engine.js';
import type { FromWorker, ToWorker, WorkerData } from './worker-messages.js';

export interface EngineThreadOptions {
  readonly dataDir: string;
  readonly logger: Logger;
}

type Inventory = AgentMessageOf<'inventory'>['runs'];

interface Waiting {
  readonly resolve: (runs: Inventory) => void;
  readonly reject: (fault: Fault) => void;
}

export class EngineThread implements RunEngine {
  private readonly options: EngineThreadOptions;
  private readonly listeners = new Set<(report: EngineReport) => void>();
  /** Runs that have begun and not finished, with whether they are in the journal. */
  private readonly running = new Map<string, { readonly isApply: boolean }>();
  private waiting: Waiting[] = [];
  private worker: Worker | null = null;
  private stopped: (() => void) | null = null;

  constructor(options: EngineThreadOptions) {
    this.options = options;
  }

  subscribe(listener: (report: EngineReport) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Starts no thread while the journal is empty. Throws the fault that keeps the engine from working. */
  async inventory(): Promise<Inventory> {
    if (this.worker === null && isEmpty(join(this.options.dataDir, 'journal'))) return [];
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.post({ do: 'inventory' });
    });
  }

  begin(head: OrchestratorMessageOf<'run'>, content: RunContent): void {
    this.running.set(head.run_id, { isApply: head.mode === 'apply' });
    this.post({ do: 'begin', head, content });
  }

  cancel(runId: string): void {
    if (this.worker !== null) this.post({ do: 'cancel', runId });
  }

  resume(runId: string, from: number): void {
    this.post({ do: 'resume', runId, from });
  }

  acknowledge(runId: string): void {
    this.post({ do: 'acknowledge', runId });
  }

  disconnected(): void {
    if (this.worker !== null) this.post({ do: 'disconnected' });
  }

  async stop(): Promise<void> {
    if (this.worker === null) return;
    const over = new Promise<void>((resolve) => {
      this.stopped = resolve;
    });
    this.post({ do: 'stop' });
    await over;
  }

  private post(message: ToWorker): void {
    this.worker ??= this.start();
    this.worker.postMessage(message);
  }

  private start(): Worker {
    const workerData: WorkerData = { dataDir: this.options.dataDir };
    const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData });
    worker.on('message', (message: FromWorker) => this.hear(message));
    worker.on('error', (error) =>
      this.options.logger.error('the engine broke down', { reason: error.message, stack: error.stack }),
    );
    worker.on('exit', () => this.exited(worker));
    return worker;
  }

  private hear(message: FromWorker): void {
    switch (message.is) {
      case 'report':
        this.tell(message.report);
        return;
      case 'inventory':
        this.waiting.shift()?.resolve(message.runs);
        return;
      case 'log':
        this.options.logger[message.level](message.message, message.fields);
        return;
      case 'failed':
        this.failed(
          new Fault(isFaultCode(message.code) ? message.code : 'internal', message.message, {
            hint: message.hint ?? '',
          }),
        );
        return;
      case 'stopped':
        this.stopped?.();
    }
  }

  private tell(report: EngineReport): void {
    if (report.type === 'run_finished') this.running.delete(report.run_id);
    for (const listener of this.listeners) listener(report);
  }

  /** Nothing can be begun: whoever waits is told why. */
  private failed(fault: Fault): void {
    this.options.logger.error('the engine cannot work', { reason: fault.message, hint: fault.hint });
    for (const { reject } of this.waiting.splice(0)) reject(fault);
    for (const runId of [...this.running.keys()]) this.abandon(runId, fault);
  }

  /**
   * A thread that ends by itself has broken down. Plans and checks are lost; an apply is in the journal, so the thread is
   * started again to look at it and report.
   */
  private exited(worker: Worker): void {
    if (this.worker !== worker) return;
    this.worker = null;
    this.stopped?.();
    if (this.stopped !== null) return;
    const fault = new Fault('interrupted', 'the engine of the agent broke down');
    for (const { reject } of this.waiting.splice(0)) reject(fault);
    const hadApply = [...this.running.values()].some(({ isApply }) => isApply);
    for (const [runId, { isApply }] of [...this.running]) if (!isApply) this.abandon(runId, fault);
    this.running.clear();
    if (hadApply) this.worker = this.start();
  }

  private abandon(runId: string, fault: Fault): void {
    const error = { code: fault.code, message: fault.message };
    this.tell({ type: 'run_finished', run_id: runId, end: 'interrupted', results: 0, observed: null, error });
  }
}

function isEmpty(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0;
}
