/** The output of a session on its way from the agent: to the recording, the screen and whoever is attached, and how much may come. */
import { Fault } from '../../../src/kernel/fault.js';
import { Backlog, type Piece } from '../../../src/terminal/backlog.js';
import type { Frame } from '../../../src/terminal/frames.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import type { Credit } from '../../../src/terminal/window.js';
import type { Recorder } from '../recordings/recorder.js';
import type { Picture, Screen } from '../screen.js';
import { ClientOutput } from './client-output.js';
import type { Size } from './session-parts.js';

type OutputFrame = Extract<Frame, { readonly type: 'output' }>;

export interface OutputRelayOptions {
  /** Of the terminal at first. */
  readonly size: Size;
  /** Offset of the first byte that comes. */
  readonly start: number;
  /** Output just before that, for those who come back. */
  readonly tail: readonly Piece[];
  readonly recorder: Recorder | null;
  readonly screen: Screen | null;
  /** While nobody takes it, the output waits: what is missed could not be shown again. */
  readonly isLossless: boolean;
}

/** What the one who writes has taken; it stays in force for a lossless session when nobody writes. */
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

  constructor(options: OutputRelayOptions) {
    this.options = options;
    this.recorder = options.recorder;
    this.screen = options.screen;
    this.current = options.size;
    this.backlog = new Backlog(options.tail[0]?.offset ?? options.start);
    for (const { bytes, stream } of options.tail) this.backlog.append(bytes, stream);
  }

  /** All before it has come from the agent. */
  get received(): number {
    return this.backlog.end;
  }

  /** Nobody has attached yet, so all output since the start is still here. */
  get isFresh(): boolean {
    return !this.wasRead && this.backlog.start === 0;
  }

  get hasScreen(): boolean {
    return this.screen !== null;
  }

  /** Of the terminal now. */
  get size(): Size {
    return this.current;
  }

  /**
   * Output of the agent; what is here already is left out.
   * @throws Fault `protocol_violation` when something before it is missing
   */
  take({ stream, offset, bytes }: OutputFrame, data: Buffer, now: number): void {
    const { received } = this;
    if (offset > received) throw new Fault('protocol_violation', `output from ${received} to ${offset} is missing`);
    const fresh = bytes.subarray(received - offset);
    if (fresh.length === 0) return;
    this.backlog.append(fresh, stream);
    // Whoever waits for the echo of a key does not wait for what else is done with it.
    if (fresh.length === bytes.length) for (const client of this.clients) client.forward(data, offset);
    this.recorder?.write(stream, fresh);
    this.screen?.write(fresh);
    for (const client of this.clients) client.catchUp();
    this.idleSince = now;
    this.trim(TERMINAL_LIMITS.floodBacklog);
  }

  /** Goes on at an offset although what is before it never came; the screen is not known any more. */
  skipTo(offset: number): void {
    this.backlog.restart(offset);
    this.dropScreen();
  }

  /** How far the agent may forget, and how far it may go. */
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

  /** Somebody attaches; what it is shown first is for the caller to begin. */
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

  /** Whose window holds back the output. */
  setWriter(client: ClientOutput | null): void {
    if (this.writer !== null) this.kept = { consumed: this.writer.consumed, limit: this.writer.limit };
    this.writer = client;
  }

  resize(cols: number, rows: number): void {
    this.current = { cols, rows };
    this.screen?.resize(cols, rows);
    this.recorder?.resize(cols, rows);
  }

  mark(text: string): void {
    this.recorder?.mark(text);
  }

  /** The recording takes no more. */
  dropRecorder(): void {
    this.recorder = null;
  }

  /** Keeps less when nothing has come for long. @param quiet milliseconds that count as long */
  settle(now: number, quiet: number): void {
    if (now - this.idleSince >= quiet) this.trim(TERMINAL_LIMITS.idleBacklog);
  }

  /** No more output comes: everybody is sent the rest. */
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
    if (this.recorder !== null) return Math.min(this.recorder.durable, this.received);
    if (pace !== null) return Math.min(pace.consumed, this.received);
    return this.wasRead ? this.received : this.backlog.start;
  }

  /** Never drops what somebody who is attached still has to get. */
  private trim(keep: number): void {
    if (!this.wasRead) return;
    let floor = this.received - keep;
    for (const { needs } of this.clients) floor = Math.min(floor, needs);
    const pace = this.pace();
    if (pace !== null) floor = Math.min(floor, pace.consumed);
    this.backlog.dropBefore(floor);
  }
}
