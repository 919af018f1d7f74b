/** Input on its way: numbered when it is sent, kept until it is taken, and sent again after a reconnect. */
import { Backlog } from '../../terminal/backlog.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';

export interface InputOutboxOptions {
  /** Sends a piece, of at most one frame, at its absolute offset. */
  send(offset: number, bytes: Buffer): void;
  /** Sends that no more follows. */
  sendEof(): void;
}

/** More waiting than this is not asked for. */
const ENOUGH = 256 * 1024;

export class InputOutbox {
  private readonly options: InputOutboxOptions;
  /** Sent, and not yet known to be taken. */
  private readonly unacknowledged = new Backlog();
  /** Not sent yet: for want of a limit or of a connection. */
  private waiting: Buffer[] = [];
  private waitingBytes = 0;
  private limit = 0;
  private open = false;
  private eof: 'none' | 'wanted' | 'sent' = 'none';

  constructor(options: InputOutboxOptions) {
    this.options = options;
  }

  /** Bytes that are neither taken nor dropped. */
  get pending(): number {
    return this.waitingBytes + this.unacknowledged.length;
  }

  get hasRoom(): boolean {
    return this.pending < ENOUGH;
  }

  add(bytes: Buffer): void {
    if (this.eof !== 'none' || bytes.length === 0) return;
    this.waiting.push(bytes);
    this.waitingBytes += bytes.length;
    this.flush();
  }

  end(): void {
    if (this.eof === 'none') this.eof = 'wanted';
    this.flush();
  }

  /** The connection is there, as a writer whose input was taken up to that offset. What is beyond is sent again. */
  resume(taken: number): void {
    this.unacknowledged.dropBefore(taken);
    if (this.unacknowledged.length === 0) this.unacknowledged.restart(Math.max(taken, this.unacknowledged.end));
    this.begin(taken);
    let offset = this.unacknowledged.start;
    for (;;) {
      const piece = this.unacknowledged.read(offset, TERMINAL_LIMITS.input);
      if (piece === null) break;
      this.options.send(piece.offset, piece.bytes);
      offset += piece.bytes.length;
    }
    this.flush();
  }

  /** Becomes the writer at that offset: what was on its way belongs to an earlier time and is forgotten. */
  restart(taken: number): void {
    this.clear();
    this.unacknowledged.restart(taken);
    this.limit = 0;
    this.begin(taken);
    this.flush();
  }

  /** The connection is lost, or the pen is: nothing is sent until it is there again. */
  pause(): void {
    this.open = false;
  }

  clear(): void {
    this.waiting = [];
    this.waitingBytes = 0;
    this.unacknowledged.restart(this.unacknowledged.end);
  }

  /** Taken up to `consumed`; may be sent up to `limit`. */
  acknowledge(consumed: number, limit: number): void {
    this.unacknowledged.dropBefore(consumed);
    this.limit = Math.max(this.limit, limit);
    this.flush();
  }

  private begin(taken: number): void {
    this.open = true;
    this.limit = Math.max(this.limit, taken + TERMINAL_LIMITS.inputBacklog);
    if (this.eof === 'sent') this.eof = 'wanted';
  }

  private flush(): void {
    while (this.open && this.waitingBytes > 0) {
      const { end } = this.unacknowledged;
      const room = Math.min(TERMINAL_LIMITS.input, this.limit - end);
      if (room <= 0) return;
      const bytes = this.cut(room);
      this.unacknowledged.append(bytes);
      this.options.send(end, bytes);
    }
    if (!this.open || this.eof !== 'wanted') return;
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
