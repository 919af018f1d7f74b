/** Cuts a stream of bytes where characters end, so that none is torn by the border of a chunk. */
import { isAscii, isUtf8 } from 'node:buffer';

export interface Decoded {
  readonly text: string;
  /** As they came; the text stands for exactly these. */
  readonly bytes: Buffer;
  /** The text is not all of it: some of the bytes are no UTF-8. */
  readonly inexact: boolean;
  /** All of it is ASCII. */
  readonly isPlain: boolean;
}

export class WholeCharacters {
  private rest: Buffer = NOTHING;

  /** Bytes that were given but not taken out: the beginning of a character. */
  get pending(): number {
    return this.rest.length;
  }

  /** Everything up to the last whole character; null when that is nothing. */
  push(bytes: Buffer): Decoded | null {
    const all = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    const whole = all.length - beginningAtEnd(all);
    this.rest = whole === all.length ? NOTHING : Buffer.from(all.subarray(whole));
    return decode(all.subarray(0, whole));
  }

  /** What is pending, though it is no character. */
  flush(): Decoded | null {
    const bytes = this.rest;
    this.rest = NOTHING;
    return decode(bytes);
  }
}

const NOTHING = Buffer.alloc(0);

function decode(bytes: Buffer): Decoded | null {
  if (bytes.length === 0) return null;
  if (isAscii(bytes)) return { text: bytes.toString('latin1'), bytes, inexact: false, isPlain: true };
  return { text: bytes.toString('utf8'), bytes, inexact: !isUtf8(bytes), isPlain: false };
}

/** How many bytes at the end begin a character that more bytes may complete. */
export function beginningAtEnd(bytes: Buffer): number {
  for (let length = 1; length <= Math.min(3, bytes.length); length += 1) {
    const first = bytes[bytes.length - length] as number;
    if (first >= 0xc0) return length < lengthOf(first) ? length : 0;
    if (first < 0x80) return 0;
  }
  return 0;
}

/** Bytes of the character that begins with this one; 0 for one that begins none. */
const lengthOf = (first: number): number => {
  if (first >= 0xf5 || first < 0xc2) return 0;
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
};
