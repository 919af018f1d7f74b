/** What goes between the thread of the relay and the thread that records. */
import type { Piece } from '../../../src/terminal/backlog.js';
import type { OutputStream } from '../../../src/terminal/frames.js';
import type { OutputPlace } from '../output-slots.js';
import type { RecordingEnd, RecordingHead } from './recorder.js';

export interface RecordingWorkerData {
  readonly dataDir: string;
  /** Most bytes of one recording, before it is compressed. */
  readonly maxBytes: number;
  /** Nothing is recorded while less than that is free on the disk, in bytes. */
  readonly minFreeBytes: number;
}

/** Asked under a number of its own, with which the answer comes. */
export type RecordingQuestion =
  | { readonly do: 'create'; readonly id: number; readonly head: RecordingHead }
  | { readonly do: 'recover'; readonly id: number; readonly head: RecordingHead }
  | { readonly do: 'close'; readonly id: number; readonly status: number | null }
  | { readonly do: 'release'; readonly id: number };

export type ToRecordingThread =
  | { readonly do: 'ask'; readonly ask: number; readonly question: RecordingQuestion }
  /** Memory that both threads see, for the output of any recording. */
  | { readonly do: 'slot'; readonly slot: number; readonly memory: SharedArrayBuffer }
  | ({ readonly do: 'write'; readonly id: number; readonly stream: OutputStream } & OutputPlace)
  | { readonly do: 'resize'; readonly id: number; readonly cols: number; readonly rows: number }
  | { readonly do: 'mark'; readonly id: number; readonly text: string };

/** A recording that was made or gone on with. */
export interface BegunRecording {
  /** Relative to the data directory. */
  readonly path: string;
  /** Output so far, and bytes of the file. */
  readonly durable: number;
  readonly size: number;
  /** The newest output. */
  readonly tail: readonly Piece[];
}

export type RecordingAnswer = BegunRecording | RecordingEnd;

/** A fault, which no thread gets whole from another. */
export interface ToldFault {
  readonly code: 'recording_failed' | 'transcript_invalid';
  readonly message: string;
  readonly hint: string | null;
  readonly cause: { readonly message: string; readonly code: string | null };
}

export type FromRecordingThread =
  | { readonly is: 'answer'; readonly ask: number; readonly answer: RecordingAnswer }
  | { readonly is: 'refused'; readonly ask: number; readonly fault: ToldFault }
  /** What was in these has been taken. */
  | { readonly is: 'free'; readonly slots: readonly number[] }
  /** So much output, and so many bytes of the file, are on the disk. */
  | { readonly is: 'durable'; readonly id: number; readonly offset: number; readonly size: number }
  | {
      readonly is: 'stopped';
      readonly id: number;
      readonly state: 'truncated' | 'failed';
      readonly reason: string;
    };
