/** The recording of a session: its state, and the recorder while it takes output. */

import type { Recorder, RecorderEvents } from '../recordings/recorder.js';
import type { RecordingEnd } from '../recordings/recording.js';
import type { TerminalRow } from '../session-store.js';

export type RecordingState = TerminalRow['recording'];

/** The recording stopped, and the reason. */
export interface RecordingStop {
  readonly state: 'truncated' | 'failed';
  readonly reason: string;
  /** True when the session must end without a recording. */
  readonly isFatal: boolean;
}

interface SessionRecordingOptions {
  /** Path of the file, as the recorder names it; null without one. */
  readonly path: string | null;
  readonly onDurable: () => void;
  /** Returns true if a recording is required; called when it stops. */
  readonly isRequired: () => boolean;
}

export class SessionRecording {
  /** Callbacks for the recorder. */
  readonly events: RecorderEvents;
  private readonly options: SessionRecordingOptions;
  private current: RecordingState = 'on';
  private writer: Recorder | null = null;
  private onStopped: ((stop: RecordingStop) => void) | null = null;
  /** A stop before `listen`. */
  private earlyStop: RecordingStop | null = null;

  constructor(options: SessionRecordingOptions) {
    this.options = options;
    const { onDurable } = options;
    this.events = { onDurable, onStopped: (state, reason) => this.stop(state, reason) };
  }

  /** Returns a recording that never records, in the given state. */
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

  /** Stops the recording. Only the first call has an effect. */
  stop(state: RecordingStop['state'], reason: string): void {
    if (this.current !== 'on') return;
    this.current = state;
    const stop = { state, reason, isFatal: this.options.isRequired() };
    if (this.onStopped === null) this.earlyStop = stop;
    else this.onStopped(stop);
  }

  /** Registers the listener for a stop. An earlier stop is reported at once. */
  listen(onStopped: (stop: RecordingStop) => void): void {
    this.onStopped = onStopped;
    const { earlyStop } = this;
    this.earlyStop = null;
    if (earlyStop !== null) onStopped(earlyStop);
  }

  /**
   * Closes the recording after all output. Returns its checksum, or null.
   * @param status exit status of the program; null when it did not exit by itself
   */
  async seal(status: number | null): Promise<RecordingEnd['sha256']> {
    if (this.writer === null) return null;
    const { state, sha256 } = await this.writer.close(status);
    // A truncated recording stays truncated although it closes cleanly.
    if (this.current === 'on') this.current = state;
    return sha256;
  }

  /** Deletes the recording of a session that did not open. */
  async discard(): Promise<void> {
    await this.writer?.discard();
  }

  /** Releases the file, which the next run of the orchestrator continues. */
  async release(): Promise<void> {
    await this.writer?.release();
  }
}
