/** The output of a session that is not acknowledged, in frames as far as the orchestrator allows. */
import { Backlog } from '../../terminal/backlog.js';
import { type OutputStream, outputFrame } from '../../terminal/frames.js';

/** Read before the orchestrator has said how much it wants, in bytes. */
const FIRST_LIMIT = 64 * 1024;
/** Output of one frame, in bytes: what fits into a single record of TLS, so that a flood comes in pieces that delay nobody. */
export const FRAME_OUTPUT = 16 * 1024 - 64;

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

  /** As much as goes into one; null when there is nothing that may be sent. */
  frame(): Buffer | null {
    const offset = this.next;
    const bytes: Buffer[] = [];
    let stream: OutputStream = 'out';
    while (this.next - offset < FRAME_OUTPUT) {
      const piece = this.backlog.read(this.next, FRAME_OUTPUT - (this.next - offset), this.limit);
      if (piece === null || (bytes.length > 0 && piece.stream !== stream)) break;
      stream = piece.stream;
      bytes.push(piece.bytes);
      this.next += piece.bytes.length;
    }
    const [first] = bytes;
    if (first === undefined) return null;
    return outputFrame(stream, offset, bytes.length === 1 ? first : Buffer.concat(bytes));
  }
}
