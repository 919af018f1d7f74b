/** The files of recordings that are open: makes them, and goes on with them after a crash. */
import { type FileHandle, mkdir, open, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../../src/kernel/clock.js';
import { Fault, isFault, messageOf } from '../../../src/kernel/fault.js';
import { CastEncoder } from '../../../src/terminal/recording/cast-encoder.js';
import { headLine } from '../../../src/terminal/recording/cast-format.js';
import { plainAgain } from './compress-recording.js';
import { DirectorySyncs } from './directory-syncs.js';
import { hashFile } from './hash-file.js';
import { LineMemory, linePool } from './line-memory.js';
import type { RecordingHead } from './recorder.js';
import type { BegunRecording, RecordingWorkerData } from './recording-messages.js';
import { recordingPath } from './recording-path.js';
import { RecordingWriter, type WriterEvents } from './recording-writer.js';
import { scanRecording } from './replay-recording.js';

export interface RecordingMakerOptions extends RecordingWorkerData {
  readonly clock: Clock;
}

export interface BegunWriter extends BegunRecording {
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

export class RecordingMaker {
  private readonly options: RecordingMakerOptions;
  private readonly blocks = linePool();
  private readonly directories = new DirectorySyncs();
  /** Directories of recordings whose own names are on the disk. */
  private readonly synced = new Set<string>();

  constructor(options: RecordingMakerOptions) {
    this.options = options;
  }

  /** @throws Fault `recording_failed` when the file cannot be made or the disk is too full */
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
   * Cuts what a crash left torn off a recording and goes on with it.
   * @throws Fault `recording_failed`, `transcript_invalid`
   */
  async recover(head: RecordingHead, events: WriterEvents): Promise<BegunWriter> {
    const path = recordingPath(head.sessionId, head.openedAt);
    const full = join(this.options.dataDir, path);
    try {
      // The orchestrator may have ended between the end of the recording and that of the session.
      await plainAgain(full);
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

  /** What is wrong with the disk, in words; null when there is room. */
  private async diskProblem(): Promise<string | null> {
    const { dataDir, minFreeBytes } = this.options;
    const { bavail, bsize } = await statfs(dataDir);
    const free = bavail * bsize;
    return free >= minFreeBytes
      ? null
      : `only ${mebibytes(free)} of ${dataDir} are free, less than ${mebibytes(minFreeBytes)}`;
  }

  /** A new file that is on the disk, name and all. */
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

  /** The name of a new file is on the disk; those of the directories that hold it are once they have been synced. */
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
