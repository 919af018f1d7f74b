/** Parses modules in worker threads: a large module takes half a second, which would block all other requests. */
import { Worker } from 'node:worker_threads';
import { Fault, messageOf } from '../../../src/kernel/fault.js';
import type { Service } from '../../../src/kernel/service.js';
import type { Position } from '../../../src/language/diagnostic.js';
import type { Core } from '../../core/core.js';
import type { AttachedFiles } from './module-files.js';
import type { ParsedText, ParsedValues, TextParser } from './text-parser.js';

/** A text to parse, or with pointers, the text of a module to find their positions in. */
export interface ParserTask {
  readonly what: 'module' | 'values';
  readonly content: string;
  /** Files beside a module. */
  readonly files: AttachedFiles;
  readonly pointers: readonly string[] | null;
}

export interface ParserPoolOptions extends Pick<Core, 'logger'> {
  /** Maximum number of threads. */
  readonly threads?: number;
  /** Maximum number of texts that wait for a thread. */
  readonly waiting?: number;
  /** Maximum number of those of one operator, so that none takes the places of all. */
  readonly waitingOfOperator?: number;
  /** Heap limit of a thread, in megabytes. */
  readonly heap?: number;
  /** Idle time after which a thread ends to free its memory, in milliseconds. */
  readonly idleAfter?: number;
  /** Timeout of one text, after which its thread is terminated, in milliseconds. */
  readonly timeoutMs?: number;
}

const STANDARD = {
  threads: 2,
  waiting: 64,
  waitingOfOperator: 16,
  heap: 512,
  idleAfter: 10_000,
  timeoutMs: 60_000,
} as const;

interface Job {
  readonly task: ParserTask;
  /** Null for a text that no operator sent. */
  readonly operatorId: string | null;
  readonly resolve: (answer: string) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  readonly ended: Promise<void>;
  job: Job | null;
  /** Ends the thread when its job times out, or when it stays idle. */
  timer: NodeJS.Timeout | undefined;
}

export class ParserPool implements TextParser, Service {
  readonly name = 'module parser';
  private readonly options: Required<ParserPoolOptions>;
  private readonly threads = new Set<Thread>();
  private readonly waiting: Job[] = [];
  private isStopped = false;

  constructor(options: ParserPoolOptions) {
    this.options = { ...STANDARD, ...options };
  }

  /** Threads start with the first text. */
  async start(): Promise<void> {
    this.isStopped = false;
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    for (const job of this.waiting.splice(0)) job.reject(stopping());
    await Promise.all([...this.threads].map(({ worker, ended }) => worker.terminate().then(() => ended)));
  }

  /** Parses a text. Throws `rate_limited` when too many texts wait, `shutting_down`, and an Error when the thread crashes. */
  async parse(content: string, files: AttachedFiles, operatorId: string | null): Promise<ParsedText> {
    return JSON.parse(await this.run({ what: 'module', content, files, pointers: null }, operatorId));
  }

  /** Parses a value set. Throws the same errors as `parse`. */
  async parseValues(content: string, operatorId: string | null): Promise<ParsedValues> {
    return JSON.parse(await this.run({ what: 'values', content, files: {}, pointers: null }, operatorId));
  }

  /** Returns the positions of JSON pointers in a text. Throws the same errors as `parse`. */
  async locate(content: string, pointers: readonly string[]): Promise<readonly Position[]> {
    return JSON.parse(await this.run({ what: 'module', content, files: {}, pointers }, null));
  }

  private run(task: ParserTask, operatorId: string | null): Promise<string> {
    if (this.isStopped) throw stopping();
    const { waiting, waitingOfOperator } = this.options;
    const own = operatorId === null ? 0 : this.waiting.filter((job) => job.operatorId === operatorId).length;
    if (own >= waitingOfOperator) throw tooMany('too many modules of your operator');
    if (this.waiting.length >= waiting) throw tooMany('too many modules');
    return new Promise((resolve, reject) => {
      this.waiting.push({ task, operatorId, resolve, reject });
      this.assign();
    });
  }

  /** Assigns waiting texts to free threads, and starts threads as needed. */
  private assign(): void {
    while (this.waiting.length > 0) {
      const thread = [...this.threads].find(({ job }) => job === null) ?? this.begin();
      const job = thread === null ? undefined : this.waiting.shift();
      if (thread === null || job === undefined) return;
      thread.job = job;
      this.endAfter(thread, this.options.timeoutMs);
      thread.worker.postMessage(job.task);
    }
  }

  /** Starts a thread; returns null at the maximum number of threads. */
  private begin(): Thread | null {
    const { threads, heap, logger } = this.options;
    if (this.threads.size >= threads) return null;
    const worker = new Worker(new URL('./parser-worker.js', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: heap },
    });
    worker.unref();
    let reason = 'it took too long';
    const ended = new Promise<void>((resolve) => {
      worker.once('exit', () => {
        clearTimeout(thread.timer);
        this.threads.delete(thread);
        thread.job?.reject(
          this.isStopped ? stopping() : new Error(`the thread that parses modules broke down: ${reason}`),
        );
        if (!this.isStopped) this.assign();
        resolve();
      });
    });
    const thread: Thread = { worker, ended, job: null, timer: undefined };
    worker.on('message', (answer: string) => {
      thread.job?.resolve(answer);
      thread.job = null;
      this.endAfter(thread, this.options.idleAfter);
      this.assign();
    });
    worker.on('error', (error) => {
      reason = messageOf(error);
      logger.error('a thread that parses modules broke down', { reason });
    });
    this.threads.add(thread);
    return thread;
  }

  private endAfter(thread: Thread, milliseconds: number): void {
    clearTimeout(thread.timer);
    thread.timer = setTimeout(() => {
      // Removed first, so that the terminating thread gets no further text.
      this.threads.delete(thread);
      void thread.worker.terminate();
    }, milliseconds).unref();
  }
}

const stopping = (): Fault => new Fault('shutting_down', 'the orchestrator is stopping', { hint: 'try again soon' });

const tooMany = (what: string): Fault =>
  new Fault('rate_limited', `${what} are being read at the same time`, {
    hint: 'try again in a moment',
    data: { retry_after: 5 },
  });
