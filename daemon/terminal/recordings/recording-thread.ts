/** The recording thread, as the relay uses it, and its messages. When it crashes, all its recordings fail. */

import { Worker } from 'node:worker_threads';
import { Fault } from '../../../src/kernel/fault.js';
import type { Piece } from '../../../src/terminal/backlog.js';
import type { OutputStream } from '../../../src/terminal/frames.js';
import type { Core } from '../../core/core.js';
import { type OutputPlace, SharedSlots } from '../output-slots.js';
import type { RecordingEnd, RecordingHead } from './recording.js';

/** Heap limits in megabytes. The heap only holds data on its way to the disk. */
const HEAP = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 4 };

interface RecordingThreadOptions extends Pick<Core, 'logger'> {
  readonly data: RecordingWorkerData;
  /** Called when the thread has crashed or ended. */
  readonly onEnd: () => void;
}

/** Receives news about one recording. */
export interface RecordingListener {
  onDurable(offset: number, size: number): void;
  onStopped(state: 'truncated' | 'failed', reason: string): void;
  /** The thread has crashed. */
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
    this.worker.on('message', (message: FromRecordingThread) => this.handle(message));
    this.worker.on('error', ({ message }) =>
      options.logger.error('the recording thread failed; open terminals are no longer recorded', {
        reason: message,
        terminals: this.listeners.size,
      }),
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

  /** Creates or continues a recording. Throws the error of the thread. */
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

  /** Registers the listener of a recording until its end. */
  join(id: number, listener: RecordingListener): void {
    if (this.hasEnded) listener.onBroken();
    else this.listeners.set(id, listener);
  }

  /** Ends a recording. Returns null when the thread crashed before. */
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

  /** Ends the thread. Open recordings fail. */
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
      // Keeps the process alive until the answer arrives.
      this.worker.ref();
      this.post({ do: 'ask', ask, question });
    });
  }

  private handle(message: FromRecordingThread): void {
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

export const BROKEN = 'the recording thread has failed';

function faultOf({ code, message, hint, cause }: ToldFault): Fault {
  const error = Object.assign(new Error(cause.message), cause.code === null ? {} : { code: cause.code });
  return new Fault(code, message, { cause: error, ...(hint === null ? {} : { hint }) });
}

/** Configuration of the recording thread. */
export interface RecordingWorkerData {
  readonly dataDir: string;
  /** Maximum bytes of one recording before compression. */
  readonly maxBytes: number;
  /** Minimum free bytes of the disk for recording. */
  readonly minFreeBytes: number;
}

/** A request with an answer. Request and answer carry the same number. */
export type RecordingQuestion =
  | { readonly do: 'create'; readonly id: number; readonly head: RecordingHead }
  | { readonly do: 'recover'; readonly id: number; readonly head: RecordingHead }
  | { readonly do: 'close'; readonly id: number; readonly status: number | null }
  | { readonly do: 'release'; readonly id: number };

export type ToRecordingThread =
  | { readonly do: 'ask'; readonly ask: number; readonly question: RecordingQuestion }
  /** Shared memory for the output of any recording. */
  | { readonly do: 'slot'; readonly slot: number; readonly memory: SharedArrayBuffer }
  | ({ readonly do: 'write'; readonly id: number; readonly stream: OutputStream } & OutputPlace)
  | { readonly do: 'resize'; readonly id: number; readonly cols: number; readonly rows: number }
  | { readonly do: 'mark'; readonly id: number; readonly text: string };

/** A created or continued recording. */
export interface BegunRecording {
  /** Relative to the data directory. */
  readonly path: string;
  /** End of the durable output, and size of the file in bytes. */
  readonly durable: number;
  readonly size: number;
  /** Newest output. */
  readonly tail: readonly Piece[];
}

export type RecordingAnswer = BegunRecording | RecordingEnd;

/** A fault as data, because threads cannot exchange error objects. */
export interface ToldFault {
  readonly code: 'recording_failed' | 'transcript_invalid';
  readonly message: string;
  readonly hint: string | null;
  readonly cause: { readonly message: string; readonly code: string | null };
}

export type FromRecordingThread =
  | { readonly is: 'answer'; readonly ask: number; readonly answer: RecordingAnswer }
  | { readonly is: 'refused'; readonly ask: number; readonly fault: ToldFault }
  /** Slots that the thread no longer needs. */
  | { readonly is: 'free'; readonly slots: readonly number[] }
  /** End of the durable output, and durable size of the file in bytes. */
  | { readonly is: 'durable'; readonly id: number; readonly offset: number; readonly size: number }
  | {
      readonly is: 'stopped';
      readonly id: number;
      readonly state: 'truncated' | 'failed';
      readonly reason: string;
    };
