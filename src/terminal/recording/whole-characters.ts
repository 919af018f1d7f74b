/** Splits a byte stream at character boundaries, so that no chunk ends inside a UTF-8 character. */
import { isAscii, isUtf8 } from 'node:buffer';

export interface Decoded {
  readonly text: string;
  /** Bytes that the text was decoded from. */
  readonly bytes: Buffer;
  /** True when some bytes are invalid UTF-8, so the text does not represent them. */
  readonly inexact: boolean;
  /** True when all bytes are ASCII. */
  readonly isPlain: boolean;
}

export class WholeCharacters {
  private rest: Buffer = NOTHING;

  /** Number of bytes of an incomplete character that wait for the rest. */
  get pending(): number {
    return this.rest.length;
  }

  /** Returns everything up to the last complete character, or null when that is empty. */
  push(bytes: Buffer): Decoded | null {
    const all = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    const whole = all.length - beginningAtEnd(all);
    this.rest = whole === all.length ? NOTHING : Buffer.from(all.subarray(whole));
    return decode(all.subarray(0, whole));
  }

  /** Returns the pending bytes although they are not a character, or null. */
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

/** Returns how many bytes at the end start a character that more bytes may complete. */
export function beginningAtEnd(bytes: Buffer): number {
  for (let length = 1; length <= Math.min(3, bytes.length); length += 1) {
    const first = bytes[bytes.length - length] as number;
    if (first >= 0xc0) return length < lengthOf(first) ? length : 0;
    if (first < 0x80) return 0;
  }
  return 0;
}

/** Returns the length of a character by its first byte, or 0 when no character starts with it. */
const lengthOf = (first: number): number => {
  if (first >= 0xf5 || first < 0xc2) return 0;
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
};
