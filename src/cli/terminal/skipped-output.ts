/** Counts the output that a picture of the screen stood in for, and says how much that was and where it can be read. */
import { formatBytes } from '../format.js';

export class SkippedOutput {
  private readonly sessionId: string;
  /** Bytes that were skipped since the last words about them. */
  private fresh = 0;
  /** The screen before the first of them was the alternate one. */
  private wasAlternate = false;
  /** Bytes so far. */
  private total = 0;
  private recording: 'off' | 'on' | 'stopped' = 'off';

  constructor(sessionId: string) {
    this.sessionId = sessionId;
  }

  set isRecorded(isRecorded: boolean) {
    if (isRecorded) this.recording = 'on';
    else if (this.recording === 'on') this.recording = 'stopped';
  }

  /** @param isAlternate whether the terminal showed the alternate screen before the bytes that are skipped */
  add(bytes: number, isAlternate: boolean): void {
    if (this.fresh === 0) this.wasAlternate = isAlternate;
    this.fresh += bytes;
  }

  /**
   * Returns what to say about the bytes that were added since the last call.
   * A program that has the alternate screen before and after them draws over what it showed, so that nothing is missed.
   */
  words(isAlternate: boolean): readonly string[] {
    const { fresh, wasAlternate, total } = this;
    this.fresh = 0;
    if (fresh === 0 || (wasAlternate && isAlternate)) return [];
    this.total += fresh;
    const all = total === 0 ? '' : ` (${formatBytes(this.total)} so far)`;
    return [`${formatBytes(fresh)} of output was not shown here${all}, only the screen behind it`, this.place()];
  }

  private place(): string {
    const read = `orch term transcript ${this.sessionId}`;
    if (this.recording === 'on') return `to read it: ${read}`;
    if (this.recording === 'stopped') return `the recording has stopped, so it may lack some of it: ${read}`;
    return 'this session is not recorded, so it cannot be read later';
  }
}
