/** What a session's terminal shows, kept by an emulator, for whoever attaches in the middle. */
import type { SnapshotHead } from '../../src/terminal/notes.js';

/** The picture of a screen: bytes that make a terminal show it, whatever it showed before. */
export interface Picture {
  readonly head: SnapshotHead;
  readonly bytes: Buffer;
}

export interface Screen {
  /** Output up to here has been parsed. */
  readonly parsed: number;
  /** Output that follows what was written last; handled in order with the calls of the others. */
  write(bytes: Buffer): void;
  resize(cols: number, rows: number): void;
  /** The screen after everything written so far. Rejects when the emulator has failed: the session goes on without pictures. */
  picture(): Promise<Picture>;
  close(): void;
}

export interface ScreenOptions {
  readonly cols: number;
  readonly rows: number;
  /** Offset of the first byte that will be written. */
  readonly offset: number;
  /** Called when more has been parsed. */
  readonly onParsed: (parsed: number) => void;
}

/** Makes screens; one emulator thread for all, started with the first. */
export interface Screens {
  open(options: ScreenOptions): Screen;
}
