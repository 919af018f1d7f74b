/**
 * Keeps out input that comes late. After a silence nobody knows how long the input behind it was on its way: the receiver says
 * where it stands (`place`), and takes nothing until the sender, who knows when it was typed, has sent the rest again or dropped
 * it (`anew`).
 */
import { TERMINAL_LIMITS } from './limits.js';

/** Milliseconds of silence that are a silence: every sender pings more often. */
export const STALL = TERMINAL_LIMITS.pingInterval + 1_000;

export type Passage = 'take' | 'ask' | 'ignore';

export class InputGate {
  private isKnown = false;
  private isShut = false;
  private seen = 0;

  /** The sender can say anew what it still means. An older version cannot. */
  get canAsk(): boolean {
    return this.isKnown;
  }

  /**
   * What to do with input that has just come. After `ask` nothing is taken until the sender begins anew.
   * @param stalls how many silences the socket has had
   */
  passage(stalls: number): Passage {
    if (this.isShut) return 'ignore';
    const isDoubtful = this.isKnown && stalls !== this.seen;
    this.seen = stalls;
    if (!isDoubtful) return 'take';
    this.isShut = true;
    return 'ask';
  }

  /** The sender is asked; what is on its way does not count. */
  shut(): void {
    this.isShut = true;
  }

  /** The sender begins anew. @param stalls see `passage` */
  open(stalls: number): void {
    this.isKnown = true;
    this.isShut = false;
    this.seen = stalls;
  }
}
