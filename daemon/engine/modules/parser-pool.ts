/** Parses modules in threads: a large one takes half a second, in which no other request would be answered. */
import { Worker } from 'node:worker_threads';
import { Fault, messageOf } from '../../../src/kernel/fault.js';
import type { Service } from '../../../src/kernel/service.js';
import type { Position } from '../../../src/language/diagnostic.js';
import type { Core } from '../../core/core.js';
import type { ParsedText, TextParser } from './text-parser.js';

/** What a thread is sent: a text to parse, or with pointers, to find their positions in. */
export interface ParserTask {
  readonly content: string;
  readonly pointers: readonly string[] | null;
}

export interface ParserPoolOptions extends Pick<Core, 'logger'> {
  /** Threads at a time. */
  readonly threads?: number;
  /** Texts that wait for a thread. */
  readonly waiting?: number;
  /** The heap of a thread, in megabytes. */
  readonly heap?: number;
  /** A thread that has nothing to do for so long ends and gives its memory back, in milliseconds. */
  readonly idleAfter?: number;
  /** A text that takes longer ends its thread, in milliseconds. */
  readonly patience?: number;
}

const STANDARD = { threads: 2, waiting: 64, heap: 512, idleAfter: 60_000, patience: 60_000 } as const;

interface Job {
  readonly task: ParserTask;
  readonly resolve: (answer: string) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  readonly ended: Promise<void>;
  job: Job | null;
  /** Ends the thread when its job takes too long, or when none comes. */
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

  /** Throws `rate_limited` when too many texts wait, `shutting_down`; an Error when the thread breaks down. */
  async parse(content: string): Promise<ParsedText> {
    return JSON.parse(await this.run({ content, pointers: null }));
  }

  /** Throws as `parse` does. */
  async locate(content: string, pointers: readonly string[]): Promise<readonly Position[]> {
    return JSON.parse(await this.run({ content, pointers }));
  }

  private run(task: ParserTask): Promise<string> {
    if (this.isStopped) throw stopping();
    if (this.waiting.length >= this.options.waiting) throw tooMany();
    return new Promise((resolve, reject) => {
      this.waiting.push({ task, resolve, reject });
      this.assign();
    });
  }

  /** Gives waiting texts to threads that are free, and starts threads for them. */
  private assign(): void {
    while (this.waiting.length > 0) {
      const thread = [...this.threads].find(({ job }) => job === null) ?? this.begin();
      const job = thread === null ? undefined : this.waiting.shift();
      if (thread === null || job === undefined) return;
      thread.job = job;
      this.endAfter(thread, this.options.patience);
      thread.worker.postMessage(job.task);
    }
  }

  /** A new thread; null when there are as many as there may be. */
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
      // From here on it takes no further text.
      this.threads.delete(thread);
      void thread.worker.terminate();
    }, milliseconds).unref();
  }
}

const stopping = (): Fault => new Fault('shutting_down', 'the orchestrator is stopping', { hint: 'try again soon' });

const tooMany = (): Fault =>
  new Fault('rate_limited', 'too many modules are being read at the same time', {
    hint: 'try again in a moment',
    data: { retry_after: 5 },
  });
