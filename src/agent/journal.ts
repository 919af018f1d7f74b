/**
 * The agent's journal: what it was told to apply, what it was about to change and what came of it, on the disk before
 * anybody relies on it, until the orchestrator has stored it.
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
import { Fault, messageOf, systemCodeOf } from '../kernel/fault.js';
import { canonicalJson } from '../kernel/json.js';
import type { Removal } from '../resources/desired.js';
import type { RunEnd, RunItem } from '../wire/messages.js';
import type { RunContent } from '../wire/parts.js';
import type { Intent } from './converge/apply-group.js';
import { type Ledger, NO_NOTES, NO_PRECAUTIONS, type Notes, type Owed, type Precautions } from './converge/ledger.js';
import { markMade, recoverJournal } from './journal/journal-loss.js';
import type { JournalledRun, JournalRecord, JournalState, RunError } from './journal/journal-state.js';
import { frameOf, journalFile } from './journal/read-journal.js';

export interface Acceptance {
  readonly id: string;
  readonly epoch: number;
  readonly generation: number;
  readonly content: RunContent;
}

/** A journal without open runs is written anew when it has this many bytes; one with open runs, when half of it is dead. */
const SMALL = 64 * 1024;
const LARGE = 1024 * 1024;
const REPLACE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | (constants.O_NOFOLLOW ?? 0);
const APPEND = constants.O_WRONLY | constants.O_APPEND | (constants.O_NOFOLLOW ?? 0);

export class Journal implements Ledger {
  private readonly file: string;
  private readonly state: JournalState;
  private descriptor = -1;
  private size = 0;
  /** Bytes of the file when it was last written as a whole. */
  private whole = 0;
  /** Bytes of records that mean nothing any more. */
  private dead = 0;
  /** Records that are not on the disk yet. */
  private waiting: JournalRecord[] = [];
  /** The file cannot be trusted to hold what was written; the next sync writes another one. */
  private isDoubtful = false;

  /** What a damaged or missing journal took with it; null when it was whole. */
  readonly loss: string | null;

  /**
   * Opens or makes the journal of a data directory, which nobody else may write; a damaged one is kept beside a new one with
   * what it proves. Throws `journal_corrupt` for one of a newer version.
   */
  constructor(directory: string) {
    this.file = journalFile(directory);
    const { state, length, size, loss } = recoverJournal(directory);
    this.state = state;
    this.loss = loss;
    try {
      if (length === 0) this.rewrite();
      else this.open(length, size);
    } catch (error) {
      throw notWritten(this.file, error);
    }
    markMade(directory);
    this.shrink();
  }

  /** Applies that have not been acknowledged, oldest first. */
  get runs(): readonly JournalledRun[] {
    return this.state.runs;
  }

  find(run: string): JournalledRun | undefined {
    return this.state.find(run);
  }

  /** True when an apply with that order may begin: it is above everything that this agent has accepted. */
  isNewer(epoch: number, generation: number): boolean {
    return this.state.isNewer(epoch, generation);
  }

  get owed(): readonly Owed[] {
    return this.state.owed;
  }

  memo(key: string): string | null {
    return this.state.memo(key);
  }

  digest(value: unknown): string {
    return createHmac('sha256', Buffer.from(this.key(), 'hex')).update(canonicalJson(value)).digest('hex');
  }

  /** Takes an apply; it is on the disk when this returns. Throws `disk_full` and the like, and has not taken it then. */
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

  /** Notes what is about to be changed, and everything before it; it is on the disk when this returns. */
  intend(run: string, intents: readonly Intent[], precautions: Precautions = NO_PRECAUTIONS): void {
    this.waiting.push({ t: 'intent', run, intents });
    this.prepare(precautions);
    this.sync();
  }

  /** Notes what has to be kept before a change, to be synced. */
  prepare({ owed, memos }: Precautions): void {
    if (owed.length > 0) this.waiting.push({ t: 'owe', owed });
    this.settleNotes({ paid: [], memos });
  }

  /** Notes results and what is true with them; they count when the next sync has succeeded. */
  record(run: string, items: readonly RunItem[], notes: Notes = NO_NOTES): void {
    if (items.length > 0) this.waiting.push({ t: 'items', run, items });
    this.settleNotes(notes);
  }

  /** Notes what was answered and what is to be remembered, to be synced. */
  settleNotes({ paid, memos }: Notes): void {
    if (paid.length > 0 || memos.length > 0) this.waiting.push({ t: 'notes', paid, memos });
  }

  /** Notes how an apply ended, to be synced. */
  end(run: string, end: RunEnd, error: RunError | null): void {
    this.waiting.push({ t: 'end', run, end, error });
  }

  /** Brings what is waiting to the disk as one frame. Throws a Fault, and keeps it waiting, when that fails. */
  sync(): void {
    if (this.waiting.length === 0) return;
    try {
      if (this.isDoubtful) this.rewrite(this.waiting);
      else this.append(frameOf(this.waiting));
    } catch (error) {
      throw notWritten(this.file, error);
    }
    this.settle();
  }

  /** Lets what is waiting count although the disk does not take it; it stays to be written when the disk does. */
  believe(): void {
    for (const record of this.waiting) this.state.absorb(record);
    this.waiting = [];
    this.isDoubtful = true;
  }

  /** Forgets a finished apply; others are left alone. Never fails: what cannot be written now is told once more later. */
  acknowledge(run: string): void {
    const known = this.state.find(run);
    if (known === undefined || known.end === null) return;
    const record: JournalRecord = { t: 'ack', run };
    this.dead += Buffer.byteLength(JSON.stringify(known.items)) + Buffer.byteLength(JSON.stringify(known.content));
    this.state.absorb(record);
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

  /** Made when it is first needed, and on the disk with whatever is synced next. */
  private key(): string {
    const known = this.state.key;
    if (known !== null) return known;
    const record = { t: 'key', key: randomBytes(32).toString('hex') } as const;
    this.state.absorb(record);
    this.waiting.push(record);
    return record.key;
  }

  /** Secrets stay on the disk no longer than they have to. */
  private isWorthRewriting({ content: { resources, removals } }: JournalledRun): boolean {
    const isTainted = ({ taint = {} }: Pick<Removal, 'taint'>) => Object.keys(taint).length > 0;
    if (resources.some(isTainted) || removals.some(isTainted)) return true;
    if (this.state.runs.length === 0) return this.size > SMALL + 2 * this.whole;
    return this.dead > LARGE && this.dead > this.size / 2;
  }

  /** Where nobody acknowledges, as without an orchestrator, records that mean nothing any more go when the file is opened. */
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
    for (const record of this.waiting) this.state.absorb(record);
    this.waiting = [];
  }

  /** Cuts off what was being written when the machine went down; nobody was told of it. */
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
      // After a failed sync the system forgets what it could not write.
      this.isDoubtful = true;
      throw error;
    }
    this.size += frame.length;
  }

  /** Half a frame must not stand in front of the next one. */
  private cutBack(): void {
    try {
      ftruncateSync(this.descriptor, this.size);
    } catch {
      this.isDoubtful = true;
    }
  }

  /** Puts a new file in the place of the old one, with all that still means something and the records given. */
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
    // From here on the open descriptor writes to a file that nobody finds again.
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

function syncDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function notWritten(file: string, cause: unknown): Fault {
  const codes = { ENOSPC: 'disk_full', EDQUOT: 'disk_full', EROFS: 'read_only' } as const;
  const system = systemCodeOf(cause) ?? '';
  const code = Object.entries(codes).find(([name]) => name === system)?.[1] ?? 'internal';
  return new Fault(code, `the journal ${file} cannot be written: ${messageOf(cause)}`, { cause });
}
