/** Offsets of a session on the agent: output to be sent and acknowledged, input to be taken, and when its echo is settled. */

import type { Clock } from '../../kernel/clock.js';
import { Backlog } from '../../terminal/backlog.js';
import { type EchoAck, type OutputStream, outputHead, type Reading } from '../../terminal/frames.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';

/** Bytes read before the orchestrator has sent a limit. */
const FIRST_LIMIT = 64 * 1024;

export class OutputSender {
  private readonly backlog = new Backlog();
  private limit = FIRST_LIMIT;
  private next = 0;

  /** End offset of the output so far. */
  get produced(): number {
    return this.backlog.end;
  }

  get keptFrom(): number {
    return this.backlog.start;
  }

  /** Offset up to which output was sent on this socket. */
  get sent(): number {
    return this.next;
  }

  /** Number of bytes not yet sent on this socket. */
  get unsent(): number {
    return this.backlog.end - this.next;
  }

  /** True while the orchestrator accepts more output than exists. */
  get isWanted(): boolean {
    return this.backlog.end < this.limit;
  }

  get isAllSent(): boolean {
    return this.next >= this.backlog.end;
  }

  append(bytes: Buffer, stream: OutputStream): void {
    this.backlog.append(bytes, stream);
  }

  /** Takes an acknowledgement. Throws when it exceeds the output. */
  credited(consumed: number, limit: number): void {
    if (consumed > this.backlog.end) throw new Error('the peer acknowledges what it was not sent');
    this.backlog.dropBefore(consumed);
    this.next = Math.max(this.next, this.backlog.start);
    this.limit = limit;
  }

  /** Restarts sending at the first kept byte, for a new socket. */
  rewind(): void {
    this.next = this.backlog.start;
  }

  /** Drops all output, because it is not wanted. */
  discard(): void {
    this.backlog.restart(this.backlog.end);
  }

  /** Returns the next frame in parts, valid until the next acknowledgement; null when nothing may be sent. */
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

/** Bytes of taken input that are acknowledged at once. Less is acknowledged later, because no reader waits for it. */
const ACK_STEP = 16 * 1024;

export class InputIntake {
  /** Offset up to which input was passed to the program's driver. */
  private accepted = 0;
  private acknowledged = 0;
  private total = 0;

  /** Offset up to which input was accepted. */
  get end(): number {
    return this.accepted;
  }

  /** Offset up to which the system has taken the input. */
  get taken(): number {
    return this.total;
  }

  /** Returns the new part of the input; nothing of input after a gap, which is resent. */
  accept(offset: number, bytes: Buffer): Buffer {
    const skip = this.accepted - offset;
    const room = Math.max(0, this.total + TERMINAL_LIMITS.inputBacklog - this.accepted);
    const fresh = skip < 0 ? bytes.subarray(0, 0) : bytes.subarray(skip, skip + room);
    this.accepted += fresh.length;
    return fresh;
  }

  /** Records taken input. Returns whether it must be acknowledged at once. */
  recordTaken(total: number): boolean {
    this.total = total;
    return this.total - this.acknowledged >= ACK_STEP;
  }

  /** Returns the acknowledgement for the writer. */
  acknowledge(): { readonly consumed: number; readonly limit: number } {
    this.acknowledged = this.total;
    return { consumed: this.total, limit: this.total + TERMINAL_LIMITS.inputBacklog };
  }
}

export interface EchoWatchOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Returns the end of the output; null while reading is paused, when an echo may be missing. */
  readonly produced: () => number | null;
  readonly readSettings: () => Promise<Reading>;
  readonly send: (ack: EchoAck) => void;
}

interface Given {
  readonly offset: number;
  readonly at: number;
}

/** Milliseconds after which a program has echoed, if it does. */
const SETTLED_AFTER = 50;
/** Minimum milliseconds between two inspections. */
const PAUSE = 20;

/**
 * Answers `askEcho`: how much input the program could read, and how much for so long that its echo has arrived. Inspects the
 * terminal only while the client waits for an answer.
 */
export class EchoWatch {
  private readonly options: EchoWatchOptions;
  /** Input that is not settled yet. */
  private readonly recent: Given[] = [];
  private given = 0;
  private settled = 0;
  private asked = 0;
  private answeredGiven = 0;
  private answeredSettled = 0;
  private isInspecting = false;
  private lastInspection = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(options: EchoWatchOptions) {
    this.options = options;
  }

  /** Records that the program can read the input before the offset. */
  recordGiven(offset: number): void {
    this.given = offset;
    this.recent.push({ offset, at: this.options.clock.monotonic() });
    this.settle();
    this.plan();
  }

  /** Takes a question about the input before the offset. */
  ask(offset: number): void {
    this.asked = Math.max(this.asked, offset);
    this.plan();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** Schedules the next inspection, unless all questions are answered or wait for input. */
  private plan(): void {
    clearTimeout(this.timer);
    if (this.isStopped || this.isInspecting || this.answeredSettled >= Math.min(this.asked, this.given)) return;
    const now = this.options.clock.monotonic();
    const last = this.recent.at(-1);
    const isNew = this.answeredGiven < Math.min(this.asked, this.given);
    const due = isNew || last === undefined ? now : last.at + SETTLED_AFTER;
    const wait = Math.max(due - now, this.lastInspection + PAUSE - now, 0);
    if (wait === 0) void this.inspect();
    else this.timer = setTimeout(() => void this.inspect(), wait);
  }

  private async inspect(): Promise<void> {
    this.isInspecting = true;
    this.lastInspection = this.options.clock.monotonic();
    this.settle();
    const { given, settled } = this;
    const output = this.options.produced();
    if (output !== null) {
      const reading = await this.options.readSettings();
      // Input that came meanwhile may have arrived before or after the look: only another one tells.
      if (given === this.given) {
        this.answeredGiven = given;
        this.answeredSettled = settled;
        if (!this.isStopped) this.options.send({ given, settled, output, reading });
      }
    }
    this.isInspecting = false;
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
