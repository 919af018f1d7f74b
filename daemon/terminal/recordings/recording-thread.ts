/** One thread that records, and the recordings in it. When it breaks, they have all failed, and nobody waits for them. */
import { Worker } from 'node:worker_threads';
import { Fault } from '../../../src/kernel/fault.js';
import type { Logger } from '../../../src/kernel/logger.js';
import { SharedSlots } from '../output-slots.js';
import type { RecordingEnd, RecordingHead } from './recorder.js';
import type {
  BegunRecording,
  FromRecordingThread,
  RecordingAnswer,
  RecordingQuestion,
  RecordingWorkerData,
  ToldFault,
  ToRecordingThread,
} from './recording-messages.js';

/** The heap it may fill, in megabytes: what it holds is on its way to the disk. Of what is young nothing lives on. */
const HEAP = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 4 };

export interface RecordingThreadOptions {
  readonly logger: Logger;
  readonly data: RecordingWorkerData;
  /** It works no more: it broke down or was ended. */
  readonly onEnd: () => void;
}

/** One recording, as far as the thread has news of it. */
export interface RecordingListener {
  onDurable(offset: number, size: number): void;
  onStopped(state: 'truncated' | 'failed', reason: string): void;
  /** The thread has broken down. */
  onBroken(): void;
}

interface Question {
  readonly resolve: (answer: RecordingAnswer) => void;
  readonly reject: (fault: Fault) => void;
}

export class RecordingThread {
  readonly slots: SharedSlots;
  private readonly options: RecordingThreadOptions;
  private readonly worker: Worker;
  private readonly listeners = new Map<number, RecordingListener>();
  private readonly questions = new Map<number, Question>();
  private readonly ended: Promise<void>;
  private lastId = 0;
  private hasEnded = false;

  constructor(options: RecordingThreadOptions) {
    this.options = options;
    this.worker = new Worker(new URL('./recording-worker.js', import.meta.url), {
      workerData: options.data,
      resourceLimits: HEAP,
    });
    this.slots = new SharedSlots((slot, memory) => this.post({ do: 'slot', slot, memory }));
    this.worker.on('message', (message: FromRecordingThread) => this.hear(message));
    this.worker.on('error', ({ message }) =>
      options.logger.error(
        'the thread that records terminals broke down; those that are open are not recorded any more',
        {
          reason: message,
          terminals: this.listeners.size,
        },
      ),
    );
    this.ended = new Promise((resolve) => {
      this.worker.once('exit', () => {
        this.failAll();
        resolve();
      });
    });
    this.worker.unref();
  }

  get isIdle(): boolean {
    return this.listeners.size === 0 && this.questions.size === 0;
  }

  /** Throws what making the recording, or going on with it, throws in the thread. */
  async begin(
    how: 'create' | 'recover',
    head: RecordingHead,
  ): Promise<{ readonly id: number; readonly begun: BegunRecording }> {
    this.lastId += 1;
    const id = this.lastId;
    const { tail, ...begun } = (await this.ask({ do: how, id, head })) as BegunRecording;
    const pieces = tail.map(({ bytes, ...piece }) => ({
      ...piece,
      bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    }));
    return { id, begun: { ...begun, tail: pieces } };
  }

  /** From now on news of it are told, until its end. */
  join(id: number, listener: RecordingListener): void {
    if (this.hasEnded) listener.onBroken();
    else this.listeners.set(id, listener);
  }

  /** Ends the recording; null when the thread has broken down before it was done. */
  async end(question: Extract<RecordingQuestion, { readonly do: 'close' | 'release' }>): Promise<RecordingEnd | null> {
    try {
      return (await this.ask(question)) as RecordingEnd;
    } catch {
      return null;
    } finally {
      this.listeners.delete(question.id);
    }
  }

  post(message: ToRecordingThread, transfer: readonly ArrayBuffer[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  /** Ends the thread; what is still recorded in it has failed. */
  async stop(): Promise<void> {
    await this.worker.terminate();
    await this.ended;
  }

  private ask(question: RecordingQuestion): Promise<RecordingAnswer> {
    if (this.hasEnded) return Promise.reject(broken());
    this.lastId += 1;
    const ask = this.lastId;
    return new Promise((resolve, reject) => {
      this.questions.set(ask, { resolve, reject });
      // The process does not end before the answer is there.
      this.worker.ref();
      this.post({ do: 'ask', ask, question });
    });
  }

  private hear(message: FromRecordingThread): void {
    switch (message.is) {
      case 'answer':
        this.answered(message.ask)?.resolve(message.answer);
        return;
      case 'refused':
        this.answered(message.ask)?.reject(faultOf(message.fault));
        return;
      case 'free':
        for (const slot of message.slots) this.slots.release(slot);
        return;
      case 'durable':
        this.listeners.get(message.id)?.onDurable(message.offset, message.size);
        return;
      case 'stopped':
        this.listeners.get(message.id)?.onStopped(message.state, message.reason);
    }
  }

  private answered(ask: number): Question | undefined {
    const question = this.questions.get(ask);
    this.questions.delete(ask);
    if (this.questions.size === 0) this.worker.unref();
    return question;
  }

  private failAll(): void {
    this.hasEnded = true;
    const listeners = [...this.listeners.values()];
    this.listeners.clear();
    for (const listener of listeners) listener.onBroken();
    const questions = [...this.questions.values()];
    this.questions.clear();
    for (const { reject } of questions) reject(broken());
    this.options.onEnd();
  }
}

const broken = (): Fault =>
  new Fault('recording_failed', BROKEN, {
    hint: 'open the terminal again; the log of the orchestrator has the reason',
  });

export const BROKEN = 'the thread that records has broken down';

function faultOf({ code, message, hint, cause }: ToldFault): Fault {
  const error = Object.assign(new Error(cause.message), cause.code === null ? {} : { code: cause.code });
  return new Fault(code, message, { cause: error, ...(hint === null ? {} : { hint }) });
}
