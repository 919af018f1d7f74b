/** Where the output of a session is written down, as the relay sees it. */

import type { Piece } from '../../../src/terminal/backlog.js';
import type { OutputStream } from '../../../src/terminal/frames.js';
import type { RecordedOutput } from './recorded-output.js';

export interface RecorderEvents {
  /** Output up to there is on the disk. */
  onDurable(offset: number): void;
  /** Nothing is recorded any more, and why: the cap, the disk, an error. The recorder takes no more writes. */
  onStopped(state: 'truncated' | 'failed', reason: string): void;
}

/** How a recording ended. */
export interface RecordingEnd {
  readonly state: 'complete' | 'truncated' | 'failed';
  /** SHA-256 in hex of the whole plain file, which its hash events lead up to; null when it cannot be read any more. */
  readonly sha256: string | null;
}

export interface Recorder {
  /** Relative to the data directory, and for good: once closed, the file is compressed and its name gets `.gz` behind it. */
  readonly path: string;
  /** Output up to here is on the disk, or is not going to be recorded. */
  readonly durable: number;
  /** False once nothing is recorded any more: the cap, the disk, an error, its end. */
  readonly isRecording: boolean;
  /** Reads what is written from now on; null when nothing is recorded, or the file cannot be read. To be closed. */
  readBack(): RecordedOutput | null;
  /** Output that follows what was written last. */
  write(stream: OutputStream, bytes: Buffer): void;
  resize(cols: number, rows: number): void;
  /** Something that happened beside the output: `ada took the pen`, `relay restarted`. */
  mark(text: string): void;
  /**
   * Writes the rest down and closes the file; never rejects, and a second call gives the same end.
   * @param status with which the program ended, when it is known
   */
  close(status?: number | null): Promise<RecordingEnd>;
  /** Writes the rest down and lets go of the file, with which `recover` goes on later: the orchestrator stops. */
  release(): Promise<void>;
  /** Closes the file and deletes it: there is no session that it is of. */
  discard(): Promise<void>;
}

export interface RecordingHead {
  readonly sessionId: string;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly cols: number;
  readonly rows: number;
  readonly term: string;
  readonly shell: string | null;
  readonly command: readonly string[] | null;
  readonly nodeId: string;
  readonly nodeName: string | null;
  readonly operator: string;
}

/** A recording that was open when the orchestrator ended: what of it is left. */
export interface Recovered {
  readonly recorder: Recorder;
  /** The newest output, up to where the recording goes on: for clients that come back. */
  readonly tail: readonly Piece[];
  /** All output that the screen has to see again, with the sizes in between, in order; read from the file piece by piece. */
  replay(): AsyncIterable<{ readonly output: Buffer } | { readonly cols: number; readonly rows: number }>;
}

export interface Recordings {
  /** @throws Fault `recording_failed` when the file cannot be made or the disk is too full */
  create(head: RecordingHead, events: RecorderEvents): Promise<Recorder>;
  /**
   * Cuts what a crash left torn off a recording and goes on with it.
   * @throws Fault `recording_failed`, `transcript_invalid`
   */
  recover(head: RecordingHead, events: RecorderEvents): Promise<Recovered>;
  /** The name that a recording has now, given its path; null when it is not there any more. */
  locate(path: string): Promise<string | null>;
}
