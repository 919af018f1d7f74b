/** Finds the place in a terminal's output where the program's own ends: a text that nobody else can know. */
import { randomBytes } from 'node:crypto';

const NOTHING = Buffer.alloc(0);

export class EndMarker {
  /** Upper case and without line ends, so that no setting of a terminal changes it. */
  readonly bytes = Buffer.from(`\x1b_E${randomBytes(12).toString('hex').toUpperCase()}\x1b\\`);
  /** The end of what came, which may be the beginning of the marker. */
  private held: Buffer = NOTHING;

  /** What of it is output; `found` when the marker follows, after which nothing counts. */
  feed(chunk: Buffer): { readonly output: Buffer; readonly found: boolean } {
    const bytes = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk]);
    const at = bytes.indexOf(this.bytes);
    if (at >= 0) {
      this.held = NOTHING;
      return { output: bytes.subarray(0, at), found: true };
    }
    const end = bytes.length - this.beginningAtEnd(bytes);
    this.held = bytes.subarray(end);
    return { output: bytes.subarray(0, end), found: false };
  }

  /** What was held back after all. */
  release(): Buffer {
    const { held } = this;
    this.held = NOTHING;
    return held;
  }

  private beginningAtEnd(bytes: Buffer): number {
    for (let length = Math.min(this.bytes.length - 1, bytes.length); length > 0; length -= 1) {
      if (bytes.subarray(bytes.length - length).equals(this.bytes.subarray(0, length))) return length;
    }
    return 0;
  }
}
