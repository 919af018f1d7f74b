/** The recording thread's service: creates and continues recordings, routes messages to their writers, and answers. */

import { type FileHandle, mkdir, open, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Fault, isFault, messageOf, systemCodeOf } from '../../../src/kernel/fault.js';
import { CastEncoder } from '../../../src/terminal/recording/cast-encoder.js';
import { headLine } from '../../../src/terminal/recording/cast-format.js';
import type { Core } from '../../core/core.js';
import { ReceivedSlots } from '../output-slots.js';
import { LineMemory, linePool } from './line-memory.js';
import { scanRecording } from './recorded-output.js';
import type { RecordingHead } from './recording.js';
import { DirectorySyncs, hashFile, recordingPath, undoCompression } from './recording-files.js';
import type {
  BegunRecording,
  FromRecordingThread,
  RecordingAnswer,
  RecordingQuestion,
  RecordingWorkerData,
  ToldFault,
  ToRecordingThread,
} from './recording-thread.js';
import { RecordingWriter, type WriterEvents } from './recording-writer.js';

interface RecordingServiceOptions {
  readonly opener: RecordingOpener;
  readonly post: (message: FromRecordingThread) => void;
}

export class RecordingService {
  private readonly options: RecordingServiceOptions;
  private readonly writers = new Map<number, RecordingWriter>();
  private readonly slots = new ReceivedSlots();
  /** Free slots, reported in one message after all pending ones. */
  private free: number[] = [];

  constructor(options: RecordingServiceOptions) {
    this.options = options;
  }

  take(message: ToRecordingThread): void {
    switch (message.do) {
      case 'ask':
        void this.reply(message.ask, message.question);
        return;
      case 'slot':
        this.slots.add(message.slot, message.memory);
        return;
      case 'write':
        this.write(message);
        return;
      case 'resize':
        this.writers.get(message.id)?.resize(message.cols, message.rows);
        return;
      case 'mark':
        this.writers.get(message.id)?.mark(message.text);
    }
  }

  private write(message: Extract<ToRecordingThread, { readonly do: 'write' }>): void {
    const { id, slot, stream } = message;
    this.writers.get(id)?.write(stream, this.slots.read(message));
    if (slot === null) return;
    if (this.free.length === 0) setImmediate(() => this.reportFreeSlots());
    this.free.push(slot);
  }

  private reportFreeSlots(): void {
    const slots = this.free;
    this.free = [];
    this.options.post({ is: 'free', slots });
  }

  private async reply(ask: number, question: RecordingQuestion): Promise<void> {
    const { post } = this.options;
    try {
      post({ is: 'answer', ask, answer: await this.answer(question) });
    } catch (error) {
      post({ is: 'refused', ask, fault: toldFault(error) });
    }
  }

  private async answer(question: RecordingQuestion): Promise<RecordingAnswer> {
    const { opener } = this.options;
    const { id } = question;
    if (question.do === 'create' || question.do === 'recover') {
      const { writer, ...begun } = await opener[question.do](question.head, this.events(id));
      this.writers.set(id, writer);
      return begun;
    }
    const writer = this.writers.get(id);
    if (writer === undefined) throw new Error('there is no such recording');
    const end = question.do === 'close' ? await writer.close(question.status) : await writer.release();
    this.writers.delete(id);
    return end;
  }

  private events(id: number): WriterEvents {
    const { post } = this.options;
    return {
      onDurable: (offset, size) => post({ is: 'durable', id, offset, size }),
      onStopped: (state, reason) => post({ is: 'stopped', id, state, reason }),
    };
  }
}

function toldFault(error: unknown): ToldFault {
  const { cause } = error instanceof Error ? error : { cause: undefined };
  return {
    code: isFault(error, 'transcript_invalid') ? 'transcript_invalid' : 'recording_failed',
    message: messageOf(error),
    hint: isFault(error) ? (error.hint ?? null) : null,
    cause: { message: messageOf(cause ?? error), code: systemCodeOf(cause) ?? null },
  };
}

interface RecordingOpenerOptions extends RecordingWorkerData, Pick<Core, 'clock'> {}

interface BegunWriter extends BegunRecording {
  readonly writer: RecordingWriter;
}

interface OpenFile {
  readonly head: RecordingHead;
  readonly events: WriterEvents;
  readonly path: string;
  readonly file: FileHandle;
  readonly size: number;
  readonly encoder: CastEncoder;
  readonly memory: LineMemory;
}

export class RecordingOpener {
  private readonly options: RecordingOpenerOptions;
  private readonly blocks = linePool();
  private readonly directories = new DirectorySyncs();
  /** Directories whose own names are durable. */
  private readonly synced = new Set<string>();

  constructor(options: RecordingOpenerOptions) {
    this.options = options;
  }

  /** Creates a recording. Throws Fault `recording_failed` when the file cannot be created or the disk is too full. */
  async create(head: RecordingHead, events: WriterEvents): Promise<BegunWriter> {
    const path = recordingPath(head.sessionId, head.openedAt);
    try {
      const problem = await this.diskProblem();
      if (problem !== null) throw new Error(problem);
      const line = Buffer.from(castHeadLine(head));
      const memory = new LineMemory(this.blocks);
      const encoder = CastEncoder.begin(line, memory.allocate);
      const { file, size } = await this.make(path, Buffer.concat([line, ...encoder.checkpoint(0)]));
      const writer = this.writer({ head, events, path, file, size, encoder, memory });
      return { writer, path, durable: 0, size, tail: [] };
    } catch (cause) {
      throw notRecorded(head, cause);
    }
  }

  /**
   * Removes an incomplete end that a crash left, and continues the recording.
   * @throws Fault `recording_failed`, `transcript_invalid`
   */
  async recover(head: RecordingHead, events: WriterEvents): Promise<BegunWriter> {
    const path = recordingPath(head.sessionId, head.openedAt);
    const full = join(this.options.dataDir, path);
    try {
      // The orchestrator may have ended after closing the recording and before storing the end of the session.
      await undoCompression(full);
      const { scanned, tail } = await scanRecording(full);
      const { offset: durable, size } = scanned;
      const file = await open(full, 'a');
      try {
        await file.truncate(size);
        await file.datasync();
      } catch (error) {
        await file.close();
        throw error;
      }
      const memory = new LineMemory(this.blocks);
      const encoder = new CastEncoder(scanned, memory.allocate);
      const writer = this.writer({ head, events, path, file, size, encoder, memory });
      return { writer, path, durable, size, tail };
    } catch (cause) {
      throw isFault(cause) ? cause : notRecorded(head, cause);
    }
  }

  /** Returns a description of the problem with the disk, or null. */
  private async diskProblem(): Promise<string | null> {
    const { dataDir, minFreeBytes } = this.options;
    const { bavail, bsize } = await statfs(dataDir);
    const free = bavail * bsize;
    return free >= minFreeBytes
      ? null
      : `only ${mebibytes(free)} of ${dataDir} are free, less than ${mebibytes(minFreeBytes)}`;
  }

  /** Creates a file that is durable, including its name. */
  private async make(path: string, bytes: Buffer): Promise<{ readonly file: FileHandle; readonly size: number }> {
    const full = join(this.options.dataDir, path);
    const directory = dirname(full);
    if ((await mkdir(directory, { recursive: true, mode: 0o700 })) !== undefined) this.synced.delete(directory);
    const file = await open(full, 'ax', 0o600);
    try {
      await file.appendFile(bytes);
      await file.sync();
      await this.syncNames(directory);
      return { file, size: bytes.length };
    } catch (error) {
      await file.close();
      await rm(full, { force: true });
      throw error;
    }
  }

  /** Makes the name of a new file durable, and those of its directories once. */
  private async syncNames(directory: string): Promise<void> {
    const above = this.synced.has(directory) ? [] : [dirname(directory), this.options.dataDir];
    await Promise.all([directory, ...above].map((each) => this.directories.sync(each)));
    this.synced.add(directory);
  }

  private writer({ head, ...rest }: OpenFile): RecordingWriter {
    const { clock, maxBytes, dataDir } = this.options;
    const full = join(dataDir, rest.path);
    return new RecordingWriter({
      ...rest,
      openedAt: head.openedAt,
      kept: head.kept,
      clock,
      maxBytes,
      diskProblem: () => this.diskProblem(),
      hashFile: () => hashFile(full),
    });
  }
}

const castHeadLine = (head: RecordingHead): string => {
  const { sessionId: session, nodeId: node, nodeName: node_name, operator, shell } = head;
  const command = head.command === null ? null : [...head.command];
  return headLine({ ...head, session: { session, node, node_name, operator, shell, command } });
};

function notRecorded({ sessionId }: RecordingHead, cause: unknown): Fault {
  return new Fault('recording_failed', `the session ${sessionId} cannot be recorded: ${messageOf(cause)}`, {
    hint: "make room on the orchestrator's disk, or set terminal.record to best_effort or off there",
    cause,
  });
}

const mebibytes = (bytes: number): string => `${Math.floor(bytes / 1024 / 1024)} MiB`;
