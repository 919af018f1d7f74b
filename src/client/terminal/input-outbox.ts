/**
 * Input in flight: numbered when it is sent, kept until it is taken, and resent after a reconnect. Input that is too old by then is
 * dropped with everything typed after it, because the end of a line without its start would be another command.
 */
import type { Clock } from '../../kernel/clock.js';
import { Backlog } from '../../terminal/backlog.js';
import { InputAges } from '../../terminal/late-input.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';

export interface InputOutboxOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'now'>;
  /** Maximum age in milliseconds of input that is resent after a reconnect; null for no limit. */
  readonly life: number | null;
  /** Sends a piece of at most one frame at its offset. */
  send(offset: number, bytes: Buffer): void;
  /** Sends the end of the input. */
  sendEof(): void;
  /** Sends `anew`. */
  sendAnew(): void;
  onDropped(bytes: number): void;
}

/** Bytes of waiting input above which the caller should wait for `drain`. */
const ENOUGH = 256 * 1024;
/** Milliseconds of a pause in typing that end a dropped line. Input before it is dropped too. */
const PAUSE = 1_000;
const CTRL_C = 0x03;
const ENTERS = [0x0d, 0x0a];

export class InputOutbox {
  private readonly options: InputOutboxOptions;
  private readonly ages: InputAges;
  /** Input that was sent and is not acknowledged. */
  private readonly unacknowledged = new Backlog();
  /** Input that waits for a limit or a connection. */
  private waiting: Buffer[] = [];
  private waitingBytes = 0;
  private limit = 0;
  private open = false;
  /** True while nothing is sent until `place` arrives. */
  private isAwaitingPlace = false;
  private eof: 'none' | 'wanted' | 'sent' = 'none';
  /** Dropped bytes that are not reported yet. */
  private dropped = 0;
  private dropTimer: NodeJS.Timeout | undefined;

  constructor(options: InputOutboxOptions) {
    this.options = options;
    this.ages = new InputAges(options.clock);
  }

  /** Number of bytes that are neither taken nor dropped. */
  get pending(): number {
    return this.waitingBytes + this.unacknowledged.length;
  }

  /** Offset after all typed input. */
  get end(): number {
    return this.unacknowledged.end + this.waitingBytes;
  }

  get hasRoom(): boolean {
    return this.pending < ENOUGH;
  }

  /** Age in milliseconds of the oldest unacknowledged byte; 0 without one. */
  get age(): number {
    return this.ages.age(this.unacknowledged.start);
  }

  add(bytes: Buffer): void {
    if (this.eof !== 'none' || bytes.length === 0) return;
    if (this.dropTimer !== undefined && this.isDroppedInput(bytes)) return;
    if (!this.open && this.isStale(this.unacknowledged.end)) {
      this.dropped += bytes.length;
      return;
    }
    this.waiting.push(bytes);
    this.waitingBytes += bytes.length;
    this.ages.typed(this.end);
    this.flush();
  }

  finish(): void {
    if (this.eof === 'none') this.eof = 'wanted';
    this.flush();
  }

  /** Resumes as the writer whose input was taken up to `taken`, and resends the rest. */
  resume(taken: number): void {
    this.forget(taken);
    if (this.unacknowledged.length === 0) this.renumber(Math.max(taken, this.unacknowledged.end));
    this.begin(taken);
    this.isAwaitingPlace = this.isStale(this.unacknowledged.start);
    if (!this.isAwaitingPlace) this.sendFrom(this.unacknowledged.start);
  }

  /** Starts as a new writer at the offset, and forgets input that was sent before. */
  restart(taken: number): void {
    this.renumber(taken);
    this.limit = 0;
    this.begin(taken);
    if (this.isStale(taken)) this.dropFrom(taken);
    this.flush();
  }

  /**
   * Handles `place`: the other end has input up to the offset and asks for the rest.
   * @param isFirst whether the connection is new, so that the input is not in doubt
   */
  placed(offset: number, isFirst: boolean): void {
    if (!this.open || (isFirst && !this.isAwaitingPlace)) return;
    this.isAwaitingPlace = false;
    this.options.sendAnew();
    const from = Math.min(Math.max(offset, this.unacknowledged.start), this.unacknowledged.end);
    if (this.isStale(from)) this.dropFrom(from);
    else this.sendFrom(from);
    this.flush();
  }

  /** Stops sending, because the connection or the pen is lost. */
  pause(): void {
    this.open = false;
  }

  clear(): void {
    this.waiting = [];
    this.waitingBytes = 0;
    this.dropped = 0;
    clearTimeout(this.dropTimer);
    this.dropTimer = undefined;
    this.renumber(this.unacknowledged.end);
    this.ages.dropFrom(this.unacknowledged.end);
  }

  /** Takes an acknowledgement: input was taken up to `consumed` and may be sent up to `limit`. */
  acknowledge(consumed: number, limit: number): void {
    this.forget(consumed);
    this.limit = Math.max(this.limit, limit);
    this.flush();
  }

  private isStale(from: number): boolean {
    const { life } = this.options;
    return life !== null && this.ages.age(from) > life;
  }

  private forget(taken: number): void {
    this.unacknowledged.dropBefore(taken);
    this.ages.dropBefore(this.unacknowledged.start);
  }

  /** Forgets sent input, and continues with waiting input at the offset. */
  private renumber(offset: number): void {
    const { end } = this.unacknowledged;
    this.unacknowledged.restart(offset);
    this.ages.dropBefore(end);
    this.ages.move(offset - end);
  }

  private begin(taken: number): void {
    this.open = true;
    this.isAwaitingPlace = false;
    this.limit = Math.max(this.limit, taken + TERMINAL_LIMITS.inputBacklog);
    if (this.eof === 'sent') this.eof = 'wanted';
    this.options.sendAnew();
  }

  /** Drops all input from the offset on. */
  private dropFrom(offset: number): void {
    this.dropped += this.end - offset;
    this.unacknowledged.dropFrom(offset);
    this.waiting = [];
    this.waitingBytes = 0;
    this.ages.dropFrom(offset);
    this.reportDropped();
    this.dropTimer = setTimeout(() => this.endDrop(), PAUSE);
  }

  /** Reports whether input belongs to a dropped line. Enter ends that line, and Ctrl-C is always sent. */
  private isDroppedInput(bytes: Buffer): boolean {
    if (bytes.includes(CTRL_C)) {
      this.endDrop();
      return false;
    }
    this.dropped += bytes.length;
    if (ENTERS.some((enter) => bytes.includes(enter))) this.endDrop();
    else this.dropTimer?.refresh();
    return true;
  }

  private endDrop(): void {
    clearTimeout(this.dropTimer);
    this.dropTimer = undefined;
    this.reportDropped();
  }

  private reportDropped(): void {
    const { dropped } = this;
    this.dropped = 0;
    if (dropped > 0) this.options.onDropped(dropped);
  }

  private sendFrom(start: number): void {
    for (let offset = start; ; ) {
      const piece = this.unacknowledged.read(offset, TERMINAL_LIMITS.input);
      if (piece === null) break;
      this.options.send(piece.offset, piece.bytes);
      offset += piece.bytes.length;
    }
    if (this.eof === 'sent') this.eof = 'wanted';
    this.flush();
  }

  private flush(): void {
    if (!this.open || this.isAwaitingPlace) return;
    while (this.waitingBytes > 0) {
      const { end } = this.unacknowledged;
      const room = Math.min(TERMINAL_LIMITS.input, this.limit - end);
      if (room <= 0) return;
      const bytes = this.cut(room);
      this.unacknowledged.append(bytes);
      this.options.send(end, bytes);
    }
    if (this.eof !== 'wanted') return;
    this.eof = 'sent';
    this.options.sendEof();
  }

  /** Takes up to `most` bytes off the waiting input. */
  private cut(most: number): Buffer {
    const [first = Buffer.alloc(0)] = this.waiting;
    if (first.length <= most) this.waiting.shift();
    else this.waiting[0] = first.subarray(most);
    const bytes = first.subarray(0, most);
    this.waitingBytes -= bytes.length;
    return bytes;
  }
}
