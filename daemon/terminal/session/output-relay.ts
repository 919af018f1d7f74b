/** Relays output from the agent to the recording, the screen and the clients, and computes the agent's credit. */
import { Fault } from '../../../src/kernel/fault.js';
import { Backlog, type Piece } from '../../../src/terminal/backlog.js';
import type { Frame } from '../../../src/terminal/frames.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import type { Credit } from '../../../src/terminal/window.js';
import type { Picture, Screen } from '../emulator/screens.js';
import type { Recorder } from '../recordings/recorder.js';
import type { Size } from '../session-factory.js';
import { ClientOutput } from './client-side.js';

type OutputFrame = Extract<Frame, { readonly type: 'output' }>;

interface OutputRelayOptions {
  /** Initial size of the terminal. */
  readonly size: Size;
  /** Offset of the next output byte. */
  readonly start: number;
  /** Output right before `start`, for clients that resume. */
  readonly tail: readonly Piece[];
  readonly recorder: Recorder | null;
  readonly screen: Screen | null;
  /** True when output waits for a client, because missed output could not be shown again. */
  readonly isLossless: boolean;
}

/** Window of the writer. A lossless session keeps the last one while it has no writer. */
type Pace = Pick<ClientOutput, 'consumed' | 'limit'>;

export class OutputRelay {
  readonly backlog: Backlog;
  private readonly options: OutputRelayOptions;
  private readonly clients = new Set<ClientOutput>();
  private recorder: Recorder | null;
  private screen: Screen | null;
  private writer: ClientOutput | null = null;
  private kept: Pace | null = null;
  private current: Size;
  private wasRead = false;
  private idleSince = 0;
  /** Offset up to which output is in the recording since an earlier run of the orchestrator. */
  private readonly recordedUpTo: number;

  constructor(options: OutputRelayOptions) {
    this.options = options;
    this.recorder = options.recorder;
    this.screen = options.screen;
    this.current = options.size;
    this.recordedUpTo = options.start;
    this.backlog = new Backlog(options.tail[0]?.offset ?? options.start);
    for (const { bytes, stream } of options.tail) this.backlog.append(bytes, stream);
  }

  /** Output offset up to which the agent's output has arrived. */
  get received(): number {
    return this.backlog.end;
  }

  /** True before the first client attaches, while all output since the start is kept. */
  get isFresh(): boolean {
    return !this.wasRead && this.backlog.start === 0;
  }

  get hasScreen(): boolean {
    return this.screen !== null;
  }

  /** Current size of the terminal. */
  get size(): Size {
    return this.current;
  }

  /**
   * Takes output of the agent and skips duplicates.
   * @throws Fault `protocol_violation` when output before it is missing
   */
  take({ stream, offset, bytes }: OutputFrame, data: Buffer, now: number): void {
    const { received } = this;
    if (offset > received) throw new Fault('protocol_violation', `output from ${received} to ${offset} is missing`);
    const fresh = bytes.subarray(received - offset);
    if (fresh.length === 0) return;
    this.backlog.append(fresh, stream);
    // Clients come first, so that the echo of a key does not wait for recording and screen.
    if (fresh.length === bytes.length) for (const client of this.clients) client.forward(data, offset);
    const unrecorded = fresh.subarray(Math.max(0, this.recordedUpTo - Math.max(offset, received)));
    if (unrecorded.length > 0) this.recorder?.write(stream, unrecorded);
    this.screen?.write(fresh);
    for (const client of this.clients) client.catchUp();
    this.idleSince = now;
    this.trim(TERMINAL_LIMITS.floodBacklog);
  }

  /**
   * Takes output again that is recorded, because the recording of a command need not contain it, and its client may lack it. Does
   * nothing for a terminal, and once a client was served.
   */
  rewindTo(offset: number): void {
    if (!this.options.isLossless || this.wasRead || offset >= this.backlog.start) return;
    this.backlog.restart(offset);
  }

  /** Continues at an offset although output before it is missing. The screen is unknown from then on. */
  skipTo(offset: number): void {
    this.backlog.restart(offset);
    this.dropScreen();
  }

  /** Computes how much output the agent may forget and how far it may send. */
  credit(): Credit {
    const { unstored, idleBacklog, mostWindow } = TERMINAL_LIMITS;
    const limits: number[] = [];
    if (this.recorder !== null) limits.push(this.recorder.durable + unstored);
    if (this.screen !== null) limits.push(this.screen.parsed + unstored);
    const pace = this.pace();
    if (pace !== null) limits.push(pace.limit);
    else if (!this.wasRead) limits.push(this.backlog.start + idleBacklog);
    if (limits.length === 0) limits.push(this.received + mostWindow);
    return { consumed: this.consumed(pace), limit: Math.min(...limits) };
  }

  /** Adds a client. The caller starts its output. */
  add(
    options: Pick<ConstructorParameters<typeof ClientOutput>[0], 'send' | 'isSkippable' | 'onFinished'>,
  ): ClientOutput {
    const { backlog } = this;
    const client = new ClientOutput({ ...options, backlog, picture: () => this.picture() });
    this.clients.add(client);
    this.wasRead = true;
    return client;
  }

  remove(client: ClientOutput): void {
    this.clients.delete(client);
    if (this.writer === client) this.setWriter(null);
    this.trim(TERMINAL_LIMITS.floodBacklog);
  }

  /** Sets the client whose window paces the output. */
  setWriter(client: ClientOutput | null): void {
    if (this.writer !== null) this.kept = { consumed: this.writer.consumed, limit: this.writer.limit };
    this.writer = client;
  }

  resize(cols: number, rows: number): void {
    if (cols === this.current.cols && rows === this.current.rows) return;
    this.current = { cols, rows };
    this.screen?.resize(cols, rows);
    this.recorder?.resize(cols, rows);
  }

  mark(text: string): void {
    this.recorder?.mark(text);
  }

  /** Stops writing to the recorder. */
  dropRecorder(): void {
    this.recorder = null;
  }

  /** Keeps less output after `quiet` milliseconds without any. */
  shrinkWhenQuiet(now: number, quiet: number): void {
    if (now - this.idleSince >= quiet) this.trim(TERMINAL_LIMITS.idleBacklog);
  }

  /** Sends the rest to all clients, because no more output follows. */
  finish(): void {
    for (const client of [...this.clients]) client.finish();
  }

  dropScreen(): void {
    this.screen?.close();
    this.screen = null;
  }

  private picture(): Promise<Picture> | null {
    return this.screen?.picture() ?? null;
  }

  private pace(): Pace | null {
    return this.writer ?? (this.options.isLossless ? this.kept : null);
  }

  private consumed(pace: Pace | null): number {
    // The recording of a command need not contain its output, so the agent keeps what the client lacks.
    const wanted = this.options.isLossless ? (pace?.consumed ?? this.backlog.start) : this.received;
    if (this.recorder !== null) return Math.min(this.recorder.durable, this.received, wanted);
    if (pace !== null) return Math.min(pace.consumed, this.received);
    return this.wasRead ? this.received : this.backlog.start;
  }

  /** Drops old output that no attached client needs. */
  private trim(keep: number): void {
    if (!this.wasRead) return;
    let floor = this.received - keep;
    for (const { needs } of this.clients) floor = Math.min(floor, needs);
    const pace = this.pace();
    if (pace !== null) floor = Math.min(floor, pace.consumed);
    this.backlog.dropBefore(floor);
  }
}
