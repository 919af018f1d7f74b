/** The recordings of an orchestrator as files: makes them, goes on with them after a crash, compresses those that are done. */
import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open, rm, statfs } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault, isFault, messageOf } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';
import { CastEncoder } from '../../src/recording/cast-encoder.js';
import { headLine } from '../../src/recording/cast-head.js';
import { openCastFile } from '../../src/recording/open-cast-file.js';
import { scanCast } from '../../src/recording/scan-cast.js';
import { compressRecording, plainAgain, UNFINISHED } from './compress-recording.js';
import { findRecording } from './find-recording.js';
import type { Recorder, RecorderEvents, RecordingHead, Recordings, Recovered } from './recorder.js';
import { namesIn } from './recording-files.js';
import { recordingPath, TRANSCRIPTS } from './recording-path.js';
import { RecordingWriter } from './recording-writer.js';
import { replayRecording, tailOf } from './replay-recording.js';
import { syncDirectory } from './sync-directory.js';

export interface RecordingsOptions {
  readonly dataDir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Most bytes of one recording, before it is compressed. */
  readonly maxBytes: number;
  /** Nothing is recorded while less than that is free on the disk, in bytes. */
  readonly minFreeBytes: number;
}

export interface RecordingFiles extends Recordings {
  /** How much of the file of a session that is being recorded is on the disk, in bytes; null for any other session. */
  durableSize(sessionId: string): number | null;
  /**
   * Compresses what a crash left plain and removes what it left unfinished; never rejects. To be called once at the start, when
   * every session that goes on was recovered.
   * @param isActive a session whose recording may still go on
   */
  tidy(isActive: (sessionId: string) => boolean): Promise<void>;
  /** Lets go of the recordings that are open, and leaves those that are not compressed yet to the next start. */
  stop(): Promise<void>;
}

export const createRecordings = (options: RecordingsOptions): RecordingFiles => new Files(options);

class Files implements RecordingFiles {
  private readonly options: RecordingsOptions;
  private readonly open = new Map<string, RecordingWriter>();
  /** Directories of recordings whose own names are on the disk. */
  private readonly synced = new Set<string>();
  /** One after the other, so that many sessions that end at once do not take the machine. */
  private compressing: Promise<void> = Promise.resolve();
  private readonly stopping = new AbortController();

  constructor(options: RecordingsOptions) {
    this.options = options;
  }

  async create(head: RecordingHead, events: RecorderEvents): Promise<Recorder> {
    const path = recordingPath(head.sessionId, head.openedAt);
    try {
      const problem = await this.diskProblem();
      if (problem !== null) throw new Error(problem);
      const line = castHeadLine(head);
      const encoder = CastEncoder.begin(line);
      const { file, size } = await this.make(path, line + encoder.checkpoint(0));
      return this.writer({ head, events, path, file, size, encoder });
    } catch (cause) {
      throw notRecorded(head, cause);
    }
  }

  async recover(head: RecordingHead, events: RecorderEvents): Promise<Recovered> {
    const path = recordingPath(head.sessionId, head.openedAt);
    const full = join(this.options.dataDir, path);
    try {
      // The orchestrator may have ended between the end of the recording and that of the session.
      await plainAgain(full);
      const scanned = await scanCast(await openCastFile(full));
      const file = await open(full, 'a');
      try {
        await file.truncate(scanned.size);
        await file.datasync();
      } catch (error) {
        await file.close();
        throw error;
      }
      const tail = await tailOf(full, scanned);
      const recorder = this.writer({ head, events, path, file, size: scanned.size, encoder: new CastEncoder(scanned) });
      return { recorder, tail, replay: () => replayRecording(full, scanned.size) };
    } catch (cause) {
      throw isFault(cause) ? cause : notRecorded(head, cause);
    }
  }

  locate(path: string): Promise<string | null> {
    return findRecording(this.options.dataDir, path);
  }

  durableSize(sessionId: string): number | null {
    return this.open.get(sessionId)?.durableSize ?? null;
  }

  async tidy(isActive: (sessionId: string) => boolean): Promise<void> {
    const root = join(this.options.dataDir, TRANSCRIPTS);
    for (const month of await namesIn(root)) {
      for (const name of await namesIn(join(root, month))) {
        const path = join(root, month, name);
        const sessionId = name.slice(0, 26);
        if (name.endsWith(UNFINISHED)) await rm(path, { force: true }).catch(() => {});
        else if (name.endsWith('.cast') && !isActive(sessionId) && !this.open.has(sessionId)) this.compress(path);
      }
    }
    await this.compressing;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.open.values()].map((recorder) => recorder.release()));
    this.stopping.abort();
    await this.compressing;
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
  private async make(path: string, text: string): Promise<{ readonly file: FileHandle; readonly size: number }> {
    const full = join(this.options.dataDir, path);
    const directory = dirname(full);
    if ((await mkdir(directory, { recursive: true, mode: 0o700 })) !== undefined) this.synced.delete(directory);
    const file = await open(full, 'ax', 0o600);
    try {
      const bytes = Buffer.from(text, 'utf8');
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
    await Promise.all([directory, ...above].map(syncDirectory));
    this.synced.add(directory);
  }

  private writer(fields: {
    readonly head: RecordingHead;
    readonly events: RecorderEvents;
    readonly path: string;
    readonly file: FileHandle;
    readonly size: number;
    readonly encoder: CastEncoder;
  }): RecordingWriter {
    const { head, ...rest } = fields;
    const { clock, maxBytes, dataDir } = this.options;
    const full = join(dataDir, rest.path);
    const writer = new RecordingWriter({
      ...rest,
      fullPath: full,
      openedAt: head.openedAt,
      clock,
      maxBytes,
      diskProblem: () => this.diskProblem(),
      hashFile: () => hashFile(full),
      onClosed: (isDone) => {
        this.open.delete(head.sessionId);
        if (isDone) this.compress(full);
      },
    });
    this.open.set(head.sessionId, writer);
    return writer;
  }

  private compress(path: string): void {
    this.compressing = this.compressing.then(async () => {
      if (this.stopping.signal.aborted) return;
      try {
        await compressRecording(path, this.stopping.signal);
      } catch (error) {
        if (this.stopping.signal.aborted) return;
        this.options.logger.warn('a recording could not be compressed', {
          file: basename(path),
          reason: messageOf(error),
        });
      }
    });
  }
}

const castHeadLine = (head: RecordingHead): string => {
  const { sessionId: session, nodeId: node, nodeName: node_name, operator, shell } = head;
  const command = head.command === null ? null : [...head.command];
  return headLine({ ...head, session: { session, node, node_name, operator, shell, command } });
};

async function hashFile(path: string): Promise<string | null> {
  try {
    const hash = createHash('sha256');
    for await (const chunk of await openCastFile(path)) hash.update(chunk);
    return hash.digest('hex');
  } catch {
    return null;
  }
}

function notRecorded({ sessionId }: RecordingHead, cause: unknown): Fault {
  return new Fault('recording_failed', `the session ${sessionId} cannot be recorded: ${messageOf(cause)}`, {
    hint: "make room on the orchestrator's disk, or set terminal.record to best_effort or off there",
    cause,
  });
}

const mebibytes = (bytes: number): string => `${Math.floor(bytes / 1024 / 1024)} MiB`;
