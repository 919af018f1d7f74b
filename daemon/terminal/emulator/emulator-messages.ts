/** What goes between the thread of the relay and the thread of the emulator. */
import type { OutputPlace } from '../output-slots.js';

export type ToEmulator =
  | { readonly do: 'open'; readonly id: number; readonly cols: number; readonly rows: number; readonly offset: number }
  | ({ readonly do: 'write'; readonly id: number } & OutputPlace)
  /** Memory that both threads see, for the output of any screen. */
  | { readonly do: 'slot'; readonly slot: number; readonly memory: SharedArrayBuffer }
  | { readonly do: 'resize'; readonly id: number; readonly cols: number; readonly rows: number }
  | { readonly do: 'picture'; readonly id: number }
  | { readonly do: 'close'; readonly id: number };

export type FromEmulator =
  /** How far the output of screens has been parsed: pairs of id and offset. */
  | { readonly is: 'parsed'; readonly offsets: readonly (readonly [id: number, offset: number])[] }
  /** What was in these has been parsed, or is not wanted. */
  | { readonly is: 'free'; readonly slots: readonly number[] }
  /** Answers of one screen come in the order of the questions. */
  | {
      readonly is: 'picture';
      readonly id: number;
      readonly cols: number;
      readonly rows: number;
      readonly offset: number;
      readonly bytes: Uint8Array;
    }
  /** This screen has failed; nothing more is heard of it. */
  | { readonly is: 'failed'; readonly id: number; readonly reason: string };
