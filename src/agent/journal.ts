/**
 * The agent's journal: accepted applies, announced changes and results. Each record is on the disk before anything depends
 * on it, and stays until the orchestrator has stored it.
 */
import { createHmac, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { syncDirectory } from '../disk/durable.js';
import { Fault, messageOf, systemCodeOf } from '../kernel/fault.js';
import { canonicalJson } from '../kernel/json.js';
import { isTainted } from '../resources/tainted-body.js';
import type { RunEnd, RunItem } from '../wire/messages.js';
import type { RunContent } from '../wire/parts.js';
import type { Intent } from './converge/apply-group.js';
import {
  type Ledger,
  NO_NOTES,
  NO_PRECAUTIONS,
  type Notes,
  type OwedTrigger,
  type Precautions,
} from './converge/ledger.js';
import { markMade, recoverJournal } from './journal/journal-loss.js';
import {
  type Aftermath,
  aftermathOf,
  type JournalledRun,
  type JournalRecord,
  type JournalState,
  type RunError,
} from './journal/journal-state.js';
import { frameOf, journalFile } from './journal/read-journal.js';

export interface Acceptance {
  readonly id: string;
  readonly epoch: number;
  readonly generation: number;
  readonly content: RunContent;
}

/** Bytes from which a journal is rewritten: `SMALL` without open runs, `LARGE` of dead records with open runs. */
const SMALL = 64 * 1024;
const LARGE = 1024 * 1024;
const REPLACE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | (constants.O_NOFOLLOW ?? 0);
const APPEND = constants.O_WRONLY | constants.O_APPEND | (constants.O_NOFOLLOW ?? 0);

export class Journal implements Ledger {
  /** The data directory. */
  readonly directory: string;
  private readonly file: string;
  private readonly state: JournalState;
  private descriptor = -1;
  private size = 0;
  /** Bytes of the file after its last rewrite. */
  private whole = 0;
  /** Bytes of obsolete records. */
  private dead = 0;
  /** Records that are not yet on the disk. */
  private waiting: JournalRecord[] = [];
  /** True when written records may not be on the disk; the next sync then rewrites the file. */
  private isDoubtful = false;

  /** The loss with a damaged or missing journal; null when it was intact. */
  readonly loss: string | null;

  /**
   * Opens or creates the journal of a data directory, which the caller must hold. Keeps a damaged journal beside a new one that
   * contains what it proves. Throws `journal_corrupt` for a journal of a newer version.
   */
  constructor(directory: string) {
    this.directory = directory;
    this.file = journalFile(directory);
    const { state, length, size, loss } = recoverJournal(directory);
    this.state = state;
    this.loss = loss;
    try {
      if (length === 0) this.rewrite();
      else this.open(length, size);
    } catch (error) {
      throw writeFault(this.file, error);
    }
    markMade(directory);
    this.shrink();
  }

  /** Unacknowledged applies, oldest first. */
  get runs(): readonly JournalledRun[] {
    return this.state.runs;
  }

  find(run: string): JournalledRun | undefined {
    return this.state.find(run);
  }

  /** True when (epoch, generation) is above everything that this agent has accepted. */
  isNewer(epoch: number, generation: number): boolean {
    return this.state.isNewer(epoch, generation);
  }

  get owed(): readonly OwedTrigger[] {
    return this.state.owed;
  }

  memo(key: string): string | null {
    return this.state.memo(key);
  }

  digest(value: unknown): string {
    return createHmac('sha256', Buffer.from(this.key(), 'hex')).update(canonicalJson(value)).digest('hex');
  }

  /** Accepts an apply, which is on the disk when this returns. Throws `disk_full` and the like without accepting it. */
  accept({ id, epoch, generation, content }: Acceptance): void {
    this.sync();
    this.waiting.push({ t: 'accepted', run: id, epoch, generation, ...content });
    try {
      this.sync();
    } catch (error) {
      this.waiting = [];
      throw error;
    }
  }

  /** Records announced changes; they and all earlier records are on the disk when this returns. */
  intend(run: string, intents: readonly Intent[], precautions: Precautions = NO_PRECAUTIONS): void {
    this.waiting.push({ t: 'intent', run, intents });
    this.recordPrecautions(precautions);
    this.sync();
  }

  /** Records entries to keep before a change; the caller syncs. */
  recordPrecautions({ owed, memos }: Precautions): void {
    if (owed.length > 0) this.waiting.push({ t: 'owe', owed });
    this.recordNotes({ paid: [], memos });
  }

  /** Records results with their ledger entries; they count after the next successful sync. */
  record(run: string, items: readonly RunItem[], notes: Notes = NO_NOTES): void {
    if (items.length > 0) this.waiting.push({ t: 'items', run, items });
    this.recordNotes(notes);
  }

  /** Records answered triggers and memos; the caller syncs. */
  recordNotes({ paid, memos }: Notes): void {
    if (paid.length > 0 || memos.length > 0) this.waiting.push({ t: 'notes', paid, memos });
  }

  /** Records the end of an apply with what followed it; the caller syncs. */
  end(run: string, end: RunEnd, error: RunError | null, after: Aftermath = {}): void {
    this.waiting.push({ t: 'end', run, end, error, ...aftermathOf(after) });
  }

  /** Writes the waiting records to the disk as one frame. Throws a Fault and keeps them waiting on failure. */
  sync(): void {
    if (this.waiting.length === 0) return;
    try {
      if (this.isDoubtful) this.rewrite(this.waiting);
      else this.append(frameOf(this.waiting));
    } catch (error) {
      throw writeFault(this.file, error);
    }
    this.settle();
  }

  /** Lets waiting records count although the disk refuses them; the next sync rewrites the file with them. */
  assumeWritten(): void {
    for (const record of this.waiting) this.state.apply(record);
    this.waiting = [];
    this.isDoubtful = true;
  }

  /** Forgets a finished apply and ignores others. Never fails: an unwritten acknowledgement only causes another report. */
  acknowledge(run: string): void {
    const known = this.state.find(run);
    if (known === undefined || known.end === null) return;
    const record: JournalRecord = { t: 'ack', run };
    this.dead += Buffer.byteLength(JSON.stringify(known.items)) + Buffer.byteLength(JSON.stringify(known.content));
    this.state.apply(record);
    this.waiting.push(record);
    if (!this.isWorthRewriting(known)) return;
    try {
      this.rewrite();
      this.waiting = this.waiting.filter(({ t }) => t !== 'ack');
    } catch {
      // The old file still holds everything.
    }
  }

  close(): void {
    if (this.descriptor < 0) return;
    try {
      this.sync();
    } finally {
      closeSync(this.descriptor);
      this.descriptor = -1;
    }
  }

  /** Returns the digest key, which is generated at its first use and stored with the next sync. */
  private key(): string {
    const known = this.state.key;
    if (known !== null) return known;
    const record = { t: 'key', key: randomBytes(32).toString('hex') } as const;
    this.state.apply(record);
    this.waiting.push(record);
    return record.key;
  }

  /** True when the file should be rewritten after an acknowledgement; applies with secrets leave the disk at once. */
  private isWorthRewriting({ content: { resources, removals, verify = [] } }: JournalledRun): boolean {
    if (resources.some(isTainted) || removals.some(isTainted) || verify.some(isTainted)) return true;
    if (this.state.runs.length === 0) return this.size > SMALL + 2 * this.whole;
    return this.dead > LARGE && this.dead > this.size / 2;
  }

  /** Drops obsolete records when the file is opened, because without an orchestrator no acknowledgement does. */
  private shrink(): void {
    if (this.state.runs.length > 0 || this.size <= SMALL) return;
    if (this.size <= SMALL + 2 * frameOf(this.state.records()).length) return;
    try {
      this.rewrite();
    } catch {
      // The old file still holds everything.
    }
  }

  private settle(): void {
    for (const record of this.waiting) this.state.apply(record);
    this.waiting = [];
  }

  /** Opens the file and cuts off a torn last frame, which was never reported. */
  private open(length: number, size: number): void {
    this.descriptor = openSync(this.file, APPEND);
    this.size = length;
    if (length === size) return;
    ftruncateSync(this.descriptor, length);
    fsyncSync(this.descriptor);
  }

  private append(frame: Buffer): void {
    try {
      writeFully(this.descriptor, frame);
    } catch (error) {
      this.cutBack();
      throw error;
    }
    try {
      fdatasyncSync(this.descriptor);
    } catch (error) {
      // After a failed fsync the system drops the pages that it could not write.
      this.isDoubtful = true;
      throw error;
    }
    this.size += frame.length;
  }

  /** Removes a partially written frame, which must not precede the next one. */
  private cutBack(): void {
    try {
      ftruncateSync(this.descriptor, this.size);
    } catch {
      this.isDoubtful = true;
    }
  }

  /** Replaces the file by a new one with all live records and the given ones. */
  private rewrite(more: readonly JournalRecord[] = []): void {
    const temporary = `${this.file}.new`;
    const frames = [frameOf(this.state.records()), ...(more.length > 0 ? [frameOf(more)] : [])];
    const descriptor = openSync(temporary, REPLACE, 0o600);
    try {
      for (const frame of frames) writeFully(descriptor, frame);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, this.file);
    // From here on the open descriptor belongs to an unlinked file.
    this.isDoubtful = true;
    syncDirectory(dirname(this.file));
    if (this.descriptor >= 0) closeSync(this.descriptor);
    this.descriptor = openSync(this.file, APPEND);
    this.size = frames.reduce((sum, frame) => sum + frame.length, 0);
    this.whole = this.size;
    this.dead = 0;
    this.isDoubtful = false;
  }
}

function writeFully(descriptor: number, data: Buffer): void {
  for (let at = 0; at < data.length; ) at += writeSync(descriptor, data, at);
}

function writeFault(file: string, cause: unknown): Fault {
  const codes = { ENOSPC: 'disk_full', EDQUOT: 'disk_full', EROFS: 'read_only' } as const;
  const system = systemCodeOf(cause) ?? '';
  const code = Object.entries(codes).find(([name]) => name === system)?.[1] ?? 'internal';
  return new Fault(code, `the journal ${file} cannot be written: ${messageOf(cause)}`, { cause });
}
