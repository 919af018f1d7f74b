/** The recording of a session as the session sees it: how it stands, and the recorder while it takes output. */

import type { Recorder, RecorderEvents, RecordingEnd } from '../recordings/recorder.js';
import type { TerminalRow } from '../session-store.js';

export type RecordingState = TerminalRow['recording'];

/** Nothing is recorded any more, and why. */
export interface RecordingStop {
  readonly state: 'truncated' | 'failed';
  readonly reason: string;
  /** The session may not go on without a recording. */
  readonly isFatal: boolean;
}

export interface SessionRecordingOptions {
  /** Of the file, as the recorder names it; null when there is none. */
  readonly path: string | null;
  readonly onDurable: () => void;
  /** There has to be one; asked when it stops. */
  readonly isRequired: () => boolean;
}

export class SessionRecording {
  /** For the recorder. */
  readonly events: RecorderEvents;
  private readonly options: SessionRecordingOptions;
  private current: RecordingState = 'on';
  private writer: Recorder | null = null;
  private onStopped: ((stop: RecordingStop) => void) | null = null;
  /** A stop that nobody was told of yet. */
  private untold: RecordingStop | null = null;

  constructor(options: SessionRecordingOptions) {
    this.options = options;
    const { onDurable } = options;
    this.events = { onDurable, onStopped: (state, reason) => this.stop(state, reason) };
  }

  /** There is none, by that state. */
  static none(state: RecordingState, path: string | null): SessionRecording {
    const none = new SessionRecording({ path, onDurable: () => undefined, isRequired: () => false });
    none.current = state;
    return none;
  }

  get state(): RecordingState {
    return this.current;
  }

  get path(): string | null {
    return this.writer?.path ?? this.options.path;
  }

  get recorder(): Recorder | null {
    return this.writer;
  }

  use(recorder: Recorder): void {
    this.writer = recorder;
  }

  /** Only the first stop counts. */
  stop(state: RecordingStop['state'], reason: string): void {
    if (this.current !== 'on') return;
    this.current = state;
    const stop = { state, reason, isFatal: this.options.isRequired() };
    if (this.onStopped === null) this.untold = stop;
    else this.onStopped(stop);
  }

  /** From now on stops are told; one that has been already is told at once. */
  listen(onStopped: (stop: RecordingStop) => void): void {
    this.onStopped = onStopped;
    const { untold } = this;
    this.untold = null;
    if (untold !== null) onStopped(untold);
  }

  /**
   * Closes it for good, after all output. Gives the checksum when there is one.
   * @param status with which the program ended; null when it did not end by itself
   */
  async seal(status: number | null): Promise<RecordingEnd['sha256']> {
    if (this.writer === null) return null;
    const { state, sha256 } = await this.writer.close(status);
    // What is known to lack something is not made complete by being closed well.
    if (this.current === 'on') this.current = state;
    return sha256;
  }

  /** Deletes what there is: the session never came to be. */
  async discard(): Promise<void> {
    await this.writer?.discard();
  }

  /** Lets go of the file, with which the next orchestrator goes on. */
  async release(): Promise<void> {
    await this.writer?.release();
  }
}
