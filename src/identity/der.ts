/** Writes DER (ITU-T X.690), as far as keys and small certificates need it. */

/** Writes one value: tag, length, content. */
function tlv(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body]);
}

export const sequence = (...members: readonly Uint8Array[]): Buffer => tlv(0x30, ...members);
export const set = (...members: readonly Uint8Array[]): Buffer => tlv(0x31, ...members);
export const octetString = (bytes: Uint8Array): Buffer => tlv(0x04, bytes);
export const utf8String = (text: string): Buffer => tlv(0x0c, Buffer.from(text, 'utf8'));
export const yes = (): Buffer => tlv(0x01, Buffer.from([0xff]));
/** Constructed, context-specific, explicit. */
export const explicit = (number: number, ...content: readonly Uint8Array[]): Buffer => tlv(0xa0 | number, ...content);
/** Primitive, context-specific, implicit. */
export const implicit = (number: number, content: Uint8Array): Buffer => tlv(0x80 | number, content);
/** @param unused number of unused low bits in the last byte */
export const bitString = (bytes: Uint8Array, unused = 0): Buffer => tlv(0x03, Buffer.from([unused]), bytes);

/** Writes a non-negative integer, given as a number or as big-endian bytes. */
export function integer(value: number | Uint8Array): Buffer {
  const bytes = typeof value === 'number' ? bytesOf(value) : Buffer.from(value);
  let from = 0;
  while (from < bytes.length - 1 && bytes[from] === 0) from += 1;
  const shortest = bytes.subarray(from);
  return (shortest[0] ?? 0) >= 0x80 ? tlv(0x02, Buffer.from([0]), shortest) : tlv(0x02, shortest);
}

/** Writes an object identifier given in dotted form. */
export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split('.').map(Number);
  return tlv(0x06, Buffer.from([first * 40 + second, ...others.flatMap(base128)]));
}

/** Writes a time as in certificates (RFC 5280): two-digit years before 2050, four-digit years after. */
export function time(date: Date): Buffer {
  const digits = date
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replace(/[-:T]/g, '');
  return date.getUTCFullYear() < 2050 ? tlv(0x17, Buffer.from(digits.slice(2))) : tlv(0x18, Buffer.from(digits));
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes = bytesOf(length);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

function bytesOf(value: number): Buffer {
  const hex = value.toString(16);
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex');
}

function base128(value: number): readonly number[] {
  const digits = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}
