/** What is typed into a session: each byte once, in order, and no more than its program's side has room for. */
import { TERMINAL_LIMITS } from '../../terminal/limits.js';

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
