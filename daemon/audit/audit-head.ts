/**
 * Records the last committed audit event in a file beside the database. A database with a damaged write-ahead log opens
 * silently without its newest commits; this file reveals the loss.
 */
import { closeSync, constants, fdatasync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncDirectory } from '../../src/disk/durable.js';
import { Fault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import { findAuditCut, findAuditRow, lastAuditRow } from '../core/audit-store.js';
import type { Core } from '../core/core.js';
import { getMeta } from '../database/meta.js';
import type { Queryable } from '../database/schema.js';
import type { ChainPlace } from './chain-place.js';
import { type AuditKey, checkpointText, isSignedWith, type Mark, parseCheckpoint, signMark } from './checkpoint.js';

/** File name in the data directory. */
export const AUDIT_HEAD_FILE = 'audit.head';

/** Bytes of one of the two slots in the file. Writes alternate between them, so a torn write leaves the other slot intact. */
const SLOT = 512;
const SLOTS = 2;

interface AuditHeadOptions extends Pick<Core, 'clock' | 'logger'> {
  readonly file: string;
  readonly key: AuditKey;
}

/** Difference between a store and the events that were committed to it. */
export interface LostEvents {
  /** Number of events missing at the end; 0 when the event `expected_seq` exists with another hash; null when it is unknown. */
  readonly missing: number | null;
  /** Number of the last event in the store; 0 for an empty store. */
  readonly last_seq: number;
  /** Number of the event that was committed last; null when it is unknown. */
  readonly expected_seq: number | null;
  readonly expected_hash: string | null;
  /** Why the file does not tell; null when it does. */
  readonly problem: string | null;
}

/** Meta key of a store that has an audit head: `1` once the file holds an event of the store durably. */
export const AUDIT_HEAD_KEY = 'audit.head';
/** Meta key of a restored store: the head that was beside the store before, and is no loss of this one. */
export const REPLACED_HEAD_KEY = 'audit.replaced_head';

interface HeadPlace extends Pick<AuditHeadOptions, 'file' | 'key'> {
  /** True when the store is a file beside the head. A store on a server may be opened from another data directory. */
  readonly isBeside: boolean;
}

/**
 * Returns the lost events; null when the store holds the event of the file or has pruned it. Also null for the file of the
 * store that a restore replaced, for one of another audit key, and for a store that never had one. A missing, empty or unreadable file of a store
 * that had one counts as a loss.
 */
export async function lostEvents(db: Queryable, place: HeadPlace): Promise<LostEvents | null> {
  const { key } = place;
  const last = (await lastAuditRow(db))?.seq ?? 0;
  const cut = (await findAuditCut(db))?.seq ?? 0;
  const last_seq = Math.max(last, cut);
  const { marks, problem } = readFileOf(place);
  const head = newestOf(marks.filter((mark) => isSignedWith(key, mark)));
  if (head === null) {
    const isOfAnotherKey = marks.some((mark) => mark.publicKey !== key.publicKey);
    if (isOfAnotherKey || problem === null || (await getMeta(db, AUDIT_HEAD_KEY)) === null) return null;
    return { missing: null, last_seq, expected_seq: null, expected_hash: null, problem };
  }
  if (head.seq <= cut || checkpointText(head) === (await getMeta(db, REPLACED_HEAD_KEY))) return null;
  const lost = { last_seq, expected_seq: head.seq, expected_hash: head.hash, problem: null };
  if (head.seq > last_seq) return { missing: head.seq - last_seq, ...lost };
  const row = await findAuditRow(db, head.seq);
  return row?.hash === head.hash ? null : { missing: 0, ...lost };
}

/** Returns the fault `data_dir_invalid`, which explains the loss and the choices to the person who starts the orchestrator. */
export function lostEventsFault(dataDir: string, lost: LostEvents): Fault {
  const message =
    lost.problem === null
      ? `${lossOf(dataDir, lost)}; what was acknowledged with them is lost, such as removals of operators`
      : `${lost.problem}, so it is unknown whether the store in ${dataDir} has its newest events`;
  const first = lost.problem === null ? 'put' : 'put the file back, put';
  return new Fault('data_dir_invalid', message, {
    hint: `${first} a backup in its place with "orch serve restore FILE", or go on without them with "orch serve --new-epoch"`,
    data: { ...lost },
  });
}

function lossOf(dataDir: string, { missing, last_seq, expected_seq }: LostEvents): string {
  if (missing === 0)
    return `the store in ${dataDir} is not the one that was used last: its audit event ${expected_seq} is another one`;
  const events = missing === 1 ? 'its newest event is' : `its ${missing} newest events are`;
  return `the store in ${dataDir} ends too early: ${events} missing, it goes up to audit event ${last_seq} of ${expected_seq}`;
}

/** Returns the newer of the two slots; null when neither holds a place signed with this key. */
export const readHead = (file: string, key: AuditKey): Mark | null =>
  newestOf(readFileOf({ file, isBeside: true }).marks.filter((mark) => isSignedWith(key, mark)));

/** Returns the signed text of the newest event in the file, whatever key signed it; null without one. */
export function headTextOf(file: string): string | null {
  const newest = newestOf(readFileOf({ file, isBeside: true }).marks);
  return newest && checkpointText(newest);
}

interface HeadFile {
  /** Marks of the slots, whatever key signed them. */
  readonly marks: readonly Mark[];
  /** Why the file has none although its store may have needed it; null when it has one, or may be elsewhere. */
  readonly problem: string | null;
}

function readFileOf({ file, isBeside }: Pick<HeadPlace, 'file' | 'isBeside'>): HeadFile {
  try {
    const text = readFileSync(file, 'latin1');
    const slots = Array.from({ length: SLOTS }, (_, slot) => text.slice(slot * SLOT, (slot + 1) * SLOT));
    const marks = slots.map(parseCheckpoint).filter((mark) => mark !== null);
    return { marks, problem: marks.length === 0 ? `${file} holds no event` : null };
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === 'ENOENT') return { marks: [], problem: isBeside ? `${file} is missing` : null };
    if (code === 'EISDIR') return { marks: [], problem: `${file} is a directory` };
    return { marks: [], problem: `${file} cannot be read: ${messageOf(error)}` };
  }
}

const newestOf = (marks: readonly Mark[]): Mark | null =>
  marks.reduce<Mark | null>(
    (newest, mark) =>
      newest === null || mark.epoch > newest.epoch || (mark.epoch === newest.epoch && mark.seq > newest.seq)
        ? mark
        : newest,
    null,
  );

/**
 * Writes the file. Each commit is written to it before its writer is acknowledged, so a crash of the process loses
 * neither. The fsync follows later: after a power cut the file may be behind the database, but must not be ahead of it.
 */
export class AuditHead {
  private readonly options: AuditHeadOptions;
  private descriptor: number | null = null;
  private epoch = 0;
  private written = -1;
  private slot = 0;
  private syncing: Promise<void> | null = null;
  private isDirty = false;
  private hasFailed = false;

  constructor(options: AuditHeadOptions) {
    this.options = options;
  }

  /** Opens the file and replaces its contents with the current end of the log. */
  open(epoch: number, place: ChainPlace): void {
    const { file } = this.options;
    this.epoch = epoch;
    this.attempt(() => {
      // Never truncated: overwriting needs no free space on a full disk.
      this.descriptor = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
      const first = place.seq === 0 ? '' : this.textOf(place);
      const bytes = Buffer.from(first.padEnd(SLOT * SLOTS));
      writeSync(this.descriptor, bytes, 0, bytes.length, 0);
      this.written = place.seq;
      this.slot = 1;
      fsyncSync(this.descriptor);
      syncDirectory(dirname(file));
    });
  }

  /** Records a commit. Called after each commit, before its writers are acknowledged. Never throws: the commit stands. */
  readonly committed = (place: ChainPlace): void => {
    const { descriptor } = this;
    if (descriptor === null || place.seq <= this.written) return;
    this.attempt(() => {
      this.put(descriptor, place);
      this.isDirty = true;
      this.syncing ??= this.sync().finally(() => {
        this.syncing = null;
      });
    });
  };

  /** Waits for a sync in flight. Returns true when the file holds an event durably. */
  async isSynced(): Promise<boolean> {
    await this.syncing;
    return this.descriptor !== null && this.written > 0 && !this.hasFailed;
  }

  /** Waits for a sync in flight and closes the file. */
  async close(): Promise<void> {
    await this.syncing;
    if (this.descriptor !== null) closeSync(this.descriptor);
    this.descriptor = null;
  }

  private put(descriptor: number, place: ChainPlace): void {
    writeSync(descriptor, Buffer.from(this.textOf(place).padEnd(SLOT)), 0, SLOT, this.slot * SLOT);
    this.written = place.seq;
    this.slot = (this.slot + 1) % SLOTS;
  }

  private textOf({ seq, hash }: ChainPlace): string {
    const { key, clock } = this.options;
    const { epoch } = this;
    return checkpointText(signMark(key, { kind: 'checkpoint', epoch, seq, hash, time: Math.max(0, clock.now()) }));
  }

  private async sync(): Promise<void> {
    while (this.isDirty && this.descriptor !== null) {
      this.isDirty = false;
      const descriptor = this.descriptor;
      await new Promise<void>((resolve) =>
        fdatasync(descriptor, (error) => {
          if (error !== null) this.noteFailure(error);
          resolve();
        }),
      );
    }
  }

  private attempt(work: () => void): void {
    try {
      work();
      this.hasFailed = false;
    } catch (error) {
      this.noteFailure(error);
    }
  }

  private noteFailure(error: unknown): void {
    if (this.hasFailed) return;
    this.hasFailed = true;
    const { file, logger } = this.options;
    logger.error('the end of the audit log could not be noted beside the store', { file, reason: messageOf(error) });
  }
}
