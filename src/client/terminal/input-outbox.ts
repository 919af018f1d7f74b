/**
 * Input on its way: numbered when it is sent, kept until it is taken, and sent again after a reconnect. What was typed too long
 * ago by then is dropped with all that was typed behind it: the end of a line without its beginning would be another command.
 */
import type { Clock } from '../../kernel/clock.js';
import { Backlog } from '../../terminal/backlog.js';
import { InputAges } from '../../terminal/late-input.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';

export interface InputOutboxOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'now'>;
  /** Milliseconds after which input that is not there yet is dropped when the connection is back; null keeps it for good. */
  readonly life: number | null;
  /** Sends a piece, of at most one frame, at its absolute offset. */
  send(offset: number, bytes: Buffer): void;
  /** Sends that no more follows. */
  sendEof(): void;
  /** Sends that what follows is meant now. */
  sendAnew(): void;
  onDropped(bytes: number): void;
}

/** More waiting than this is not asked for. */
const ENOUGH = 256 * 1024;
/** After a drop the person may still be typing the same line: what follows without such a pause goes with it. Milliseconds. */
const PAUSE = 1_000;
const CTRL_C = 0x03;
const ENTERS = [0x0d, 0x0a];

export class InputOutbox {
  private readonly options: InputOutboxOptions;
  private readonly ages: InputAges;
  /** Sent, and not yet known to be taken. */
  private readonly unacknowledged = new Backlog();
  /** Not sent yet: for want of a limit or of a connection. */
  private waiting: Buffer[] = [];
  private waitingBytes = 0;
  private limit = 0;
  private open = false;
  /** Nothing is sent until the other end has said what it has. */
  private isAwaitingPlace = false;
  private eof: 'none' | 'wanted' | 'sent' = 'none';
  /** Dropped and not told yet. */
  private dropped = 0;
  private blind: NodeJS.Timeout | undefined;

  constructor(options: InputOutboxOptions) {
    this.options = options;
    this.ages = new InputAges(options.clock);
  }

  /** Bytes that are neither taken nor dropped. */
  get pending(): number {
    return this.waitingBytes + this.unacknowledged.length;
  }

  /** Offset behind all that was typed. */
  get end(): number {
    return this.unacknowledged.end + this.waitingBytes;
  }

  get hasRoom(): boolean {
    return this.pending < ENOUGH;
  }

  /** Milliseconds since the first byte was typed that is not known to be taken; 0 without one. */
  get age(): number {
    return this.ages.age(this.unacknowledged.start);
  }

  add(bytes: Buffer): void {
    if (this.eof !== 'none' || bytes.length === 0) return;
    if (this.blind !== undefined && this.swallow(bytes)) return;
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

  /** The connection is there, as a writer whose input was taken up to that offset. What is beyond is sent again. */
  resume(taken: number): void {
    this.forget(taken);
    if (this.unacknowledged.length === 0) this.renumber(Math.max(taken, this.unacknowledged.end));
    this.begin(taken);
    this.isAwaitingPlace = this.isStale(this.unacknowledged.start);
    if (!this.isAwaitingPlace) this.sendFrom(this.unacknowledged.start);
  }

  /** Becomes the writer at that offset: what was sent belongs to an earlier time and is forgotten. */
  restart(taken: number): void {
    this.renumber(taken);
    this.limit = 0;
    this.begin(taken);
    if (this.isStale(taken)) this.dropFrom(taken);
    this.flush();
  }

  /**
   * The other end has input up to there, and asks for the rest.
   * @param isFirst it says so because the connection is new, not because it doubts
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

  /** The connection is lost, or the pen is: nothing is sent until it is there again. */
  pause(): void {
    this.open = false;
  }

  clear(): void {
    this.waiting = [];
    this.waitingBytes = 0;
    this.dropped = 0;
    clearTimeout(this.blind);
    this.blind = undefined;
    this.renumber(this.unacknowledged.end);
    this.ages.dropFrom(this.unacknowledged.end);
  }

  /** Taken up to `consumed`; may be sent up to `limit`. */
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

  /** What was sent is forgotten; what waits goes on at that offset. */
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

  /** All of it goes, however young its end is. */
  private dropFrom(offset: number): void {
    this.dropped += this.end - offset;
    this.unacknowledged.dropFrom(offset);
    this.waiting = [];
    this.waitingBytes = 0;
    this.ages.dropFrom(offset);
    this.tell();
    this.blind = setTimeout(() => this.see(), PAUSE);
  }

  /** Whether it goes with what was dropped. An Enter ends that line, and Ctrl-C is always meant. */
  private swallow(bytes: Buffer): boolean {
    if (bytes.includes(CTRL_C)) {
      this.see();
      return false;
    }
    this.dropped += bytes.length;
    if (ENTERS.some((enter) => bytes.includes(enter))) this.see();
    else this.blind?.refresh();
    return true;
  }

  private see(): void {
    clearTimeout(this.blind);
    this.blind = undefined;
    this.tell();
  }

  private tell(): void {
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

  /** Up to so many bytes off the front of what waits. */
  private cut(most: number): Buffer {
    const [first = Buffer.alloc(0)] = this.waiting;
    if (first.length <= most) this.waiting.shift();
    else this.waiting[0] = first.subarray(most);
    const bytes = first.subarray(0, most);
    this.waitingBytes -= bytes.length;
    return bytes;
  }
}
