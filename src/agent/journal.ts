/**
 * The agent's journal: an append-only file of checksummed records, one a line: eight hex digits of the CRC-32 of the JSON
 * text, a space, the JSON text. Synced before anything that must not be lost is relied on; written anew, smaller, when
 * what was acknowledged is most of it.
 */
import {
  closeSync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { Fault, systemCodeOf } from '../kernel/fault.js';
import type { DesiredResource, Removal } from '../resources/desired.js';
import type { RunEnd, RunItem } from '../wire/messages.js';
import type { Intent } from './converge/apply.js';

/** What stands in the journal. `run` is the id of an apply. */
export type JournalRecord =
  | {
      readonly t: 'accepted';
      readonly run: string;
      readonly epoch: number;
      readonly generation: number;
      readonly resources: readonly DesiredResource[];
      readonly removals: readonly Removal[];
    }
  | { readonly t: 'intent'; readonly run: string; readonly intents: readonly Intent[] }
  | { readonly t: 'items'; readonly run: string; readonly items: readonly RunItem[] }
  | { readonly t: 'end'; readonly run: string; readonly end: RunEnd; readonly error: RunError | null }
  | { readonly t: 'ack'; readonly run: string }
  /** The highest that was seen, kept over compactions. */
  | { readonly t: 'highest'; readonly epoch: number; readonly generation: number };

export interface RunError {
  readonly code: string;
  readonly message: string;
}

/** An apply as the journal knows it. */
export interface JournalledRun {
  readonly id: string;
  readonly resources: readonly DesiredResource[];
  readonly removals: readonly Removal[];
  readonly intents: Map<number, Intent>;
  readonly items: RunItem[];
  end: RunEnd | null;
  error: RunError | null;
}

/** Acknowledged bytes that are worth a rewrite. */
const COMPACT_BYTES = 1024 * 1024;

export class Journal {
  private readonly file: string;
  private descriptor: number;
  private size = 0;
  private dead = 0;
  private readonly known = new Map<string, JournalledRun>();
  private readonly sizes = new Map<string, number>();
  private epoch = 0;
  private generation = 0;

  /** Opens or makes the journal in a directory. Throws `journal_corrupt` when more than its very end is damaged. */
  constructor(directory: string) {
    this.file = join(directory, 'journal');
    const text = readIfThere(this.file);
    const { records, length } = parseRecords(text, this.file);
    for (const { record, bytes } of records) this.absorb(record, bytes);
    this.descriptor = openSync(this.file, 'a', 0o600);
    // What follows the last whole record was being written when the machine went down; nobody was told of it.
    if (length < text.length) ftruncateSync(this.descriptor, length);
    this.size = length;
    syncDirectory(directory);
  }

  /** Applies that have not been acknowledged, oldest first. */
  runs(): readonly JournalledRun[] {
    return [...this.known.values()];
  }

  find(run: string): JournalledRun | undefined {
    return this.known.get(run);
  }

  /** True when an apply with that order may begin: it is above everything that this agent has seen. */
  isNewer(epoch: number, generation: number): boolean {
    return epoch > this.epoch || (epoch === this.epoch && generation > this.generation);
  }

  /** Appends records and returns when they are on the disk. */
  append(...records: readonly JournalRecord[]): void {
    const lines = records.map(lineOf);
    const data = Buffer.from(lines.join(''));
    try {
      writeFully(this.descriptor, data);
      fdatasyncSync(this.descriptor);
    } catch (error) {
      // Half a record must not stand in front of the next one.
      ftruncateSync(this.descriptor, this.size);
      throw error;
    }
    this.size += data.length;
    for (const [index, record] of records.entries()) this.absorb(record, Buffer.byteLength(lines[index] ?? ''));
  }

  /** Forgets a finished apply. */
  acknowledge(run: string): void {
    if (!this.known.has(run)) return;
    this.append({ t: 'ack', run });
    if (this.dead > COMPACT_BYTES && this.dead > this.size / 2) this.compact();
  }

  close(): void {
    if (this.descriptor < 0) return;
    fdatasyncSync(this.descriptor);
    closeSync(this.descriptor);
    this.descriptor = -1;
  }

  private absorb(record: JournalRecord, bytes: number): void {
    if (record.t === 'highest') {
      this.raise(record.epoch, record.generation);
      return;
    }
    if (record.t === 'accepted') {
      this.raise(record.epoch, record.generation);
      const { run: id, resources, removals } = record;
      this.known.set(id, { id, resources, removals, intents: new Map(), items: [], end: null, error: null });
    }
    this.sizes.set(record.run, (this.sizes.get(record.run) ?? 0) + bytes);
    const run = this.known.get(record.run);
    if (run === undefined) return;
    if (record.t === 'intent') for (const intent of record.intents) run.intents.set(intent.index, intent);
    if (record.t === 'items') run.items.push(...record.items);
    if (record.t === 'end') {
      run.end = record.end;
      run.error = record.error;
    }
    if (record.t === 'ack') {
      this.dead += this.sizes.get(record.run) ?? 0;
      this.sizes.delete(record.run);
      this.known.delete(record.run);
    }
  }

  private raise(epoch: number, generation: number): void {
    if (!this.isNewer(epoch, generation)) return;
    this.epoch = epoch;
    this.generation = generation;
  }

  /** Writes what is still needed to a new file and puts it in place of the old one. */
  private compact(): void {
    const records = [...this.known.values()].flatMap((run) => this.recordsOf(run));
    const highest: JournalRecord = { t: 'highest', epoch: this.epoch, generation: this.generation };
    const data = Buffer.from([highest, ...records].map(lineOf).join(''));
    const temporary = `${this.file}.new`;
    const descriptor = openSync(temporary, 'w', 0o600);
    try {
      writeFully(descriptor, data);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, this.file);
    syncDirectory(dirname(this.file));
    closeSync(this.descriptor);
    this.descriptor = openSync(this.file, 'a', 0o600);
    this.size = data.length;
    this.dead = 0;
  }

  private recordsOf(run: JournalledRun): readonly JournalRecord[] {
    const { id, resources, removals, intents, items, end, error } = run;
    const [epoch, generation] = [this.epoch, this.generation];
    return [
      { t: 'accepted', run: id, epoch, generation, resources, removals },
      { t: 'intent', run: id, intents: [...intents.values()] },
      { t: 'items', run: id, items },
      ...(end === null ? [] : [{ t: 'end', run: id, end, error } as const]),
    ];
  }
}

const lineOf = (record: JournalRecord): string => {
  const text = JSON.stringify(record);
  return `${checksum(text)} ${text}\n`;
};

const checksum = (text: string): string => crc32(text).toString(16).padStart(8, '0');

interface Parsed {
  readonly records: readonly { readonly record: JournalRecord; readonly bytes: number }[];
  /** Bytes up to the end of the last whole record. */
  readonly length: number;
}

/** Reads whole records; only the very last line may be torn. */
function parseRecords(data: Buffer, file: string): Parsed {
  const records: { record: JournalRecord; bytes: number }[] = [];
  let at = 0;
  while (at < data.length) {
    const end = data.indexOf(0x0a, at);
    const line = data.toString('utf8', at, end < 0 ? data.length : end);
    const record = end < 0 ? null : parseLine(line);
    if (record === null) {
      if (end >= 0 && end < data.length - 1) throw corrupt(file, at);
      break;
    }
    records.push({ record, bytes: end + 1 - at });
    at = end + 1;
  }
  return { records, length: at };
}

function parseLine(line: string): JournalRecord | null {
  const text = line.slice(9);
  if (line[8] !== ' ' || checksum(text) !== line.slice(0, 8)) return null;
  return JSON.parse(text) as JournalRecord;
}

const corrupt = (file: string, offset: number): Fault =>
  new Fault('journal_corrupt', `the journal ${file} is damaged at byte ${offset}, before its end`, {
    hint: 'look at the disk; when results of past applies may be lost, move the file away and start the agent again',
    data: { file, offset },
  });

function readIfThere(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

function writeFully(descriptor: number, data: Buffer): void {
  for (let at = 0; at < data.length; ) at += writeSync(descriptor, data, at);
}

function syncDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
