/** Reads the journal's file, detects damage and salvages what the rest proves. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { type JournalRecord, JournalState } from './journal-state.js';

const VERSION = 1;

/** The file in a data directory. */
export const journalFile = (directory: string): string => join(directory, 'journal');

export interface JournalContent {
  readonly state: JournalState;
  /** Bytes up to the end of the last whole frame; 0 for a new or unfinished file. */
  readonly length: number;
  /** Bytes of the file. */
  readonly size: number;
}

/** Reads the file; a missing file is an empty journal. Throws `journal_corrupt` when more than a torn end is damaged. */
export function readJournal(file: string): JournalContent {
  const data = bytesOf(file);
  const { lists, length, damagedAt } = readFrames(data);
  if (damagedAt !== null) throw corrupt(file, `is damaged at byte ${damagedAt}, before its end`, damagedAt);
  if (lists.length === 0 && data.length > longestFirstFrame()) throw corrupt(file, 'does not begin like a journal', 0);
  const state = new JournalState();
  for (const record of lists.flat()) state.apply(asRecord(record, file));
  return { state, length, size: data.length };
}

/** Record types that are true whatever was lost before them. */
const LASTING: ReadonlySet<JournalRecord['t']> = new Set(['journal', 'key', 'owe', 'notes', 'ack']);

/**
 * Returns what a damaged journal proves: everything before the damage, and later records that do not depend on lost ones.
 * Leaves out an apply without a proven end, because its results may have gaps; the orchestrator marks it as interrupted.
 */
export function salvageJournal(file: string): JournalState {
  const state = new JournalState();
  const { lists, proven } = salvageFrames(bytesOrNone(file));
  for (const [at, records] of lists.entries()) {
    for (const record of records.map((one) => asRecord(one, file))) {
      if (at < proven || LASTING.has(record.t)) state.apply(record);
      else if (record.t === 'accepted') state.apply({ ...record, t: 'journal', version: VERSION });
    }
  }
  for (const run of state.runs) if (run.end === null) state.apply({ t: 'ack', run: run.id });
  return state;
}

function bytesOrNone(file: string): Buffer {
  try {
    return bytesOf(file);
  } catch {
    return Buffer.alloc(0);
  }
}

/** The journal as `orch agent status` shows it; the agent may be writing to it at the same time. */
interface JournalCounts {
  /** Number of applies whose results the orchestrator has not acknowledged. */
  readonly unacknowledged: number;
  /** Number of unacknowledged applies that have not ended. */
  readonly running: number;
  /** Number of triggers that the next apply has to answer. */
  readonly owed: number;
  readonly bytes: number;
}

/** Throws `journal_corrupt`. */
export function inspectJournal(directory: string): JournalCounts {
  const { state, size } = readJournal(journalFile(directory));
  const running = state.runs.filter(({ end }) => end === null).length;
  return { unacknowledged: state.runs.length, running, owed: state.owed.length, bytes: size };
}

function bytesOf(file: string): Buffer {
  try {
    const descriptor = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    try {
      if (!fstatSync(descriptor).isFile()) throw corrupt(file, 'is not a regular file', 0);
      return readFileSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return Buffer.alloc(0);
    if (error instanceof Fault) throw error;
    throw new Fault('data_dir_invalid', `cannot read the journal ${file}: ${messageOf(error)}`, { cause: error });
  }
}

/** Casts a record of this or an older release. Throws `journal_corrupt` for a newer version, which could be misread. */
function asRecord(record: unknown, file: string): JournalRecord {
  const value = record as JournalRecord;
  if (value.t === 'journal' && value.version > VERSION) {
    throw new Fault('journal_corrupt', `the journal ${file} was written by a newer version of orch`, {
      hint: 'install that version again, or move the file away: results of past applies that were not delivered are lost then',
    });
  }
  return value;
}

/** Length of the longest possible first frame; a shorter file was cut off at its creation, before any apply was accepted. */
const longestFirstFrame = (): number => {
  const largest = Number.MAX_SAFE_INTEGER;
  return frameOf([{ t: 'journal', version: VERSION, epoch: largest, generation: largest }]).length;
};

const corrupt = (file: string, why: string, offset: number): Fault =>
  new Fault('journal_corrupt', `the journal ${file} ${why}`, {
    hint: 'check the disk; at its next start the agent keeps the file aside and goes on with what the rest of it proves',
    data: { file, offset },
  });

const MAGIC = Buffer.from([0x1e, 0x4f, 0x52, 0x4a]);
const HEADER = MAGIC.length + 8;

/**
 * Encodes records as one frame. The journal's file consists of frames, each written and synced at once. A frame is the bytes
 * 1E 4F 52 4A, the length of its text and the CRC-32 of that text (both 32 bits, little-endian), and the text: a list of
 * records in JSON, in which the first byte cannot occur.
 */
export function frameOf(records: readonly unknown[]): Buffer {
  const text = Buffer.from(JSON.stringify(records));
  const header = Buffer.alloc(HEADER);
  MAGIC.copy(header);
  header.writeUInt32LE(text.length, MAGIC.length);
  header.writeUInt32LE(crc32(text), MAGIC.length + 4);
  return Buffer.concat([header, text]);
}

interface Frames {
  /** One list of records per frame. */
  readonly lists: readonly (readonly unknown[])[];
  /** Bytes up to the end of the last whole frame. */
  readonly length: number;
  /** Offset of damage that whole frames follow; null when at most the end is torn. */
  readonly damagedAt: number | null;
}

/** Reads frames up to the first incomplete one. */
function readFrames(data: Buffer): Frames {
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

/** Returns every whole frame in order, across damage; the first `proven` ones precede the damage. */
function salvageFrames(data: Buffer): {
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

/** True when a whole frame follows: frames are written only after the previous one is on the disk, so this proves damage. */
function isFollowed(data: Buffer, from: number): boolean {
  for (let at = data.indexOf(MAGIC, from); at >= 0; at = data.indexOf(MAGIC, at + 1)) {
    if (frameAt(data, at) !== null) return true;
  }
  return false;
}
