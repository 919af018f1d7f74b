/**
 * The form of the journal's file: frames, each written and synced at once. A frame is the bytes 1E 4F 52 4A, the length
 * of its text and the CRC-32 of that text (both 32 bits, little-endian), and the text: a list of records in JSON, in
 * which the first byte cannot occur.
 */
import { crc32 } from 'node:zlib';

const MAGIC = Buffer.from([0x1e, 0x4f, 0x52, 0x4a]);
const HEADER = MAGIC.length + 8;

export function frameOf(records: readonly unknown[]): Buffer {
  const text = Buffer.from(JSON.stringify(records));
  const header = Buffer.alloc(HEADER);
  MAGIC.copy(header);
  header.writeUInt32LE(text.length, MAGIC.length);
  header.writeUInt32LE(crc32(text), MAGIC.length + 4);
  return Buffer.concat([header, text]);
}

export interface Frames {
  /** One list of records per frame. */
  readonly lists: readonly (readonly unknown[])[];
  /** Bytes up to the end of the last whole frame. */
  readonly length: number;
  /** Where something is damaged that whole frames follow; null when nothing but the end is torn. */
  readonly damagedAt: number | null;
}

/** Reads frames up to the first that is not whole. */
export function readFrames(data: Buffer): Frames {
  const lists: (readonly unknown[])[] = [];
  let at = 0;
  while (at < data.length) {
    const frame = frameAt(data, at);
    if (frame === null) return { lists, length: at, damagedAt: isFollowed(data, at + 1) ? at : null };
    lists.push(frame.records);
    at = frame.end;
  }
  return { lists, length: at, damagedAt: null };
}

/** Every whole frame in order, wherever damage stands between them; `proven` of them precede the first damage. */
export function salvageFrames(data: Buffer): {
  readonly lists: readonly (readonly unknown[])[];
  readonly proven: number;
} {
  const { lists: before, length } = readFrames(data);
  const lists = [...before];
  for (let at = data.indexOf(MAGIC, length); at >= 0; ) {
    const frame = frameAt(data, at);
    if (frame !== null) lists.push(frame.records);
    at = data.indexOf(MAGIC, frame?.end ?? at + 1);
  }
  return { lists, proven: before.length };
}

function frameAt(data: Buffer, at: number): { readonly records: readonly unknown[]; readonly end: number } | null {
  if (data.length - at < HEADER || data.compare(MAGIC, 0, MAGIC.length, at, at + MAGIC.length) !== 0) return null;
  const end = at + HEADER + data.readUInt32LE(at + MAGIC.length);
  if (end > data.length) return null;
  const text = data.subarray(at + HEADER, end);
  if (crc32(text) !== data.readUInt32LE(at + MAGIC.length + 4)) return null;
  const records: unknown = JSON.parse(text.toString('utf8'));
  return Array.isArray(records) ? { records, end } : null;
}

/** A frame is only begun when the one before it is on the disk, so a whole one behind a damaged one is a bad sign. */
function isFollowed(data: Buffer, from: number): boolean {
  for (let at = data.indexOf(MAGIC, from); at >= 0; at = data.indexOf(MAGIC, at + 1)) {
    if (frameAt(data, at) !== null) return true;
  }
  return false;
}
