/** The output of a session that is not acknowledged, in frames as far as the orchestrator allows. */
import { Backlog } from '../../terminal/backlog.js';
import { type OutputStream, outputHead } from '../../terminal/frames.js';
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
