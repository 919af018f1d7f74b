/** The output of a session that is not acknowledged, in frames as far as the orchestrator allows. */

import type { Clock } from '../../kernel/clock.js';
import { Backlog } from '../../terminal/backlog.js';
import { type EchoAck, type OutputStream, outputHead, type Reading } from '../../terminal/frames.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';

/** Read before the orchestrator has said how much it wants, in bytes. */
const FIRST_LIMIT = 64 * 1024;

export class OutputSender {
  private readonly backlog = new Backlog();
  private limit = FIRST_LIMIT;
  private next = 0;

  /** Output that exists ends here. */
  get produced(): number {
    return this.backlog.end;
  }

  get keptFrom(): number {
    return this.backlog.start;
  }

  /** It was sent up to here on this socket. */
  get sent(): number {
    return this.next;
  }

  /** Bytes that were not sent on this socket yet. */
  get unsent(): number {
    return this.backlog.end - this.next;
  }

  /** The orchestrator takes more than there is. */
  get isWanted(): boolean {
    return this.backlog.end < this.limit;
  }

  get isAllSent(): boolean {
    return this.next >= this.backlog.end;
  }

  append(bytes: Buffer, stream: OutputStream): void {
    this.backlog.append(bytes, stream);
  }

  /** Throws when the peer claims more than there is. */
  credited(consumed: number, limit: number): void {
    if (consumed > this.backlog.end) throw new Error('the peer acknowledges what it was not sent');
    this.backlog.dropBefore(consumed);
    this.next = Math.max(this.next, this.backlog.start);
    this.limit = limit;
  }

  /** On another socket everything that is kept goes out again. */
  rewind(): void {
    this.next = this.backlog.start;
  }

  /** Nobody wants any of it. */
  discard(): void {
    this.backlog.restart(this.backlog.end);
  }

  /** As much as goes into one, in parts that are good until something is credited; null when there is nothing that may be sent. */
  frame(): readonly [Buffer, ...Buffer[]] | null {
    const { swiftOutput } = TERMINAL_LIMITS;
    const offset = this.next;
    const bytes: Buffer[] = [];
    let stream: OutputStream = 'out';
    while (this.next - offset < swiftOutput) {
      const piece = this.backlog.read(this.next, swiftOutput - (this.next - offset), this.limit);
      if (piece === null || (bytes.length > 0 && piece.stream !== stream)) break;
      stream = piece.stream;
      bytes.push(piece.bytes);
      this.next += piece.bytes.length;
    }
    return bytes.length === 0 ? null : [outputHead(stream, offset), ...bytes];
  }
}

/** So much that was taken is told at once, less of it a little later: nobody waits for that, but for the echo of a key. */
const ACK_STEP = 16 * 1024;

export class InputIntake {
  /** Input up to here is in the hands of the program's driver. */
  private accepted = 0;
  private told = 0;
  private total = 0;

  /** Input up to here is not asked for again. */
  get end(): number {
    return this.accepted;
  }

  /** The system has taken it up to here. */
  get taken(): number {
    return this.total;
  }

  /** What of it is new; nothing of what leaves a gap, which is sent again. */
  accept(offset: number, bytes: Buffer): Buffer {
    const skip = this.accepted - offset;
    const room = Math.max(0, this.total + TERMINAL_LIMITS.inputBacklog - this.accepted);
    const fresh = skip < 0 ? bytes.subarray(0, 0) : bytes.subarray(skip, skip + room);
    this.accepted += fresh.length;
    return fresh;
  }

  /** Returns whether that is to be told at once. */
  took(total: number): boolean {
    this.total = total;
    return this.total - this.told >= ACK_STEP;
  }

  /** What whoever types has to know. */
  tell(): { readonly consumed: number; readonly limit: number } {
    this.told = this.total;
    return { consumed: this.total, limit: this.total + TERMINAL_LIMITS.inputBacklog };
  }
}

/**
 * Tells the client where its input stands: how much of it the program could read, and how much for so long that its echo would
 * have come. Looks at the terminal only while the client waits for an answer.
 */
export interface EchoWatchOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Output of the program so far; null while its output is not read, so that an echo may be missing. */
  readonly produced: () => number | null;
  readonly readSettings: () => Promise<Reading>;
  readonly tell: (ack: EchoAck) => void;
}

interface Given {
  readonly offset: number;
  readonly at: number;
}

/** A program that echoes has echoed after that, in milliseconds. */
const SETTLED_AFTER = 50;
/** Least time between two looks, in milliseconds. */
const PAUSE = 20;

export class EchoWatch {
  private readonly options: EchoWatchOptions;
  /** Input that is not known to be settled. */
  private readonly recent: Given[] = [];
  private given = 0;
  private settled = 0;
  private asked = 0;
  private answeredGiven = 0;
  private answeredSettled = 0;
  private isLooking = false;
  private lastLook = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(options: EchoWatchOptions) {
    this.options = options;
  }

  /** The program can read all input before that offset. */
  gave(offset: number): void {
    this.given = offset;
    this.recent.push({ offset, at: this.options.clock.monotonic() });
    this.settle();
    this.plan();
  }

  /** The client wants to know about all input before that offset. */
  ask(offset: number): void {
    this.asked = Math.max(this.asked, offset);
    this.plan();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** Plans the next look, unless all questions are answered or must wait for input that has not come. */
  private plan(): void {
    clearTimeout(this.timer);
    if (this.isStopped || this.isLooking || this.answeredSettled >= Math.min(this.asked, this.given)) return;
    const now = this.options.clock.monotonic();
    const last = this.recent.at(-1);
    const isNew = this.answeredGiven < Math.min(this.asked, this.given);
    const due = isNew || last === undefined ? now : last.at + SETTLED_AFTER;
    const wait = Math.max(due - now, this.lastLook + PAUSE - now, 0);
    if (wait === 0) void this.look();
    else this.timer = setTimeout(() => void this.look(), wait);
  }

  private async look(): Promise<void> {
    this.isLooking = true;
    this.lastLook = this.options.clock.monotonic();
    this.settle();
    const { given, settled } = this;
    const output = this.options.produced();
    if (output !== null) {
      const reading = await this.options.readSettings();
      this.answeredGiven = given;
      this.answeredSettled = settled;
      if (!this.isStopped) this.options.tell({ given, settled, output, reading });
    }
    this.isLooking = false;
    this.plan();
  }

  private settle(): void {
    const before = this.options.clock.monotonic() - SETTLED_AFTER;
    for (let first = this.recent[0]; first !== undefined && first.at <= before; first = this.recent[0]) {
      this.settled = first.offset;
      this.recent.shift();
    }
  }
}
