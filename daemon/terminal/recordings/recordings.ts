/** All recordings of the orchestrator: written by a thread of their own, and compressed when they end. */

import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { messageOf } from '../../../src/kernel/fault.js';
import type { Core } from '../../core/core.js';
import { replayRecording } from './recorded-output.js';
import { type Recorder, type RecorderEvents, type Recordings, type Recovered, WorkerRecorder } from './recorder.js';
import type { RecordingHead } from './recording.js';
import { compressRecording, exists, findRecording, namesIn, TRANSCRIPTS, UNFINISHED } from './recording-files.js';
import { type BegunRecording, RecordingThread } from './recording-thread.js';

export interface RecordingsOptions extends Pick<Core, 'clock' | 'logger'> {
  readonly dataDir: string;
  /** Maximum bytes of one recording before compression. */
  readonly maxBytes: number;
  /** Minimum free bytes of the disk for recording. */
  readonly minFreeBytes: number;
  /** Milliseconds after which a thread without recordings ends, to free its memory. */
  readonly idleAfter?: number;
}

const IDLE_AFTER = 60_000;

export interface RecordingStore extends Recordings {
  /** Returns the durable size in bytes of the file of an active recording; null for other sessions. */
  durableSize(sessionId: string): number | null;
  /**
   * Compresses plain recordings and removes unfinished compressions that a crash left; never rejects. Call it once at the start,
   * after all sessions are recovered.
   * @param isActive reports whether the recording of a session may continue
   */
  cleanUp(isActive: (sessionId: string) => boolean): Promise<void>;
  /** Releases open recordings. The next start compresses the rest. */
  stop(): Promise<void>;
}

export const createRecordings = (options: RecordingsOptions): RecordingStore => new Store(options);

class Store implements RecordingStore {
  private readonly options: RecordingsOptions;
  private readonly open = new Map<string, WorkerRecorder>();
  private thread: RecordingThread | null = null;
  private idle: NodeJS.Timeout | undefined;
  /**
   * Compressions run one by one, so that many ending sessions do not occupy the machine. Unfinished ones are removed in the same
   * queue, because a compression writes a file of the same name.
   */
  private compressing: Promise<void> = Promise.resolve();
  private readonly stopping = new AbortController();

  constructor(options: RecordingsOptions) {
    this.options = options;
  }

  async create(head: RecordingHead, events: RecorderEvents): Promise<Recorder> {
    return (await this.begin('create', head, events)).recorder;
  }

  async recover(head: RecordingHead, events: RecorderEvents): Promise<Recovered> {
    const { recorder, begun } = await this.begin('recover', head, events);
    const full = join(this.options.dataDir, begun.path);
    return { recorder, tail: begun.tail, replay: () => replayRecording(full, begun.size) };
  }

  locate(path: string): Promise<string | null> {
    return findRecording(this.options.dataDir, path);
  }

  durableSize(sessionId: string): number | null {
    return this.open.get(sessionId)?.durableSize ?? null;
  }

  async cleanUp(isActive: (sessionId: string) => boolean): Promise<void> {
    await this.cleanUpAll(isActive).catch((error: unknown) => {
      this.options.logger.error('recordings could not be tidied', { reason: messageOf(error) });
    });
    await this.compressing;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.open.values()].map((recorder) => recorder.release()));
    this.stopping.abort();
    await this.compressing;
    clearTimeout(this.idle);
    await this.thread?.stop();
  }

  private async cleanUpAll(isActive: (sessionId: string) => boolean): Promise<void> {
    const root = join(this.options.dataDir, TRANSCRIPTS);
    for (const month of await namesIn(root)) {
      for (const name of await namesIn(join(root, month))) {
        const path = join(root, month, name);
        const sessionId = name.slice(0, 26);
        if (name.endsWith(UNFINISHED)) this.inTurn(() => rm(path, { force: true }).catch(() => {}));
        else if (name.endsWith('.cast') && !isActive(sessionId) && !this.open.has(sessionId)) this.compress(path);
      }
    }
  }

  private async begin(
    how: 'create' | 'recover',
    head: RecordingHead,
    events: RecorderEvents,
  ): Promise<{ readonly recorder: Recorder; readonly begun: BegunRecording }> {
    const { clock, dataDir } = this.options;
    clearTimeout(this.idle);
    this.thread ??= this.startThread();
    const { thread } = this;
    const { id, begun: opened } = await thread.begin(how, head).catch((error: unknown) => {
      this.endLater();
      throw error;
    });
    const recorder = new WorkerRecorder({
      ...{ id, thread, opened, events, clock },
      openedAt: head.openedAt,
      fullPath: join(dataDir, opened.path),
      onClosed: (isDone) => {
        this.open.delete(head.sessionId);
        if (isDone) this.compress(join(dataDir, opened.path));
        this.endLater();
      },
    });
    this.open.set(head.sessionId, recorder);
    thread.join(id, recorder);
    return { recorder, begun: opened };
  }

  private startThread(): RecordingThread {
    const { dataDir, logger, maxBytes, minFreeBytes } = this.options;
    const thread: RecordingThread = new RecordingThread({
      logger,
      data: { dataDir, maxBytes, minFreeBytes },
      onEnd: () => {
        if (this.thread === thread) this.thread = null;
      },
    });
    return thread;
  }

  private endLater(): void {
    const { thread } = this;
    clearTimeout(this.idle);
    if (thread === null || !thread.isIdle) return;
    this.idle = setTimeout(() => {
      if (this.thread !== thread || !thread.isIdle) return;
      this.thread = null;
      void thread.stop();
    }, this.options.idleAfter ?? IDLE_AFTER).unref();
  }

  private compress(path: string): void {
    this.inTurn(async () => {
      if (this.stopping.signal.aborted) return;
      try {
        // An earlier turn may have compressed it.
        if (await exists(path)) await compressRecording(path, this.stopping.signal);
      } catch (error) {
        if (this.stopping.signal.aborted) return;
        this.options.logger.warn('a recording could not be compressed', {
          file: basename(path),
          reason: messageOf(error),
        });
      }
    });
  }

  /** Queues work on compressed files. It must not reject. */
  private inTurn(work: () => Promise<void>): void {
    this.compressing = this.compressing.then(work);
  }
}
