/**
 * The end of the audit log in a file beside the database. A database whose write-ahead log is damaged opens without its newest
 * commits and says nothing of it; this file still knows the event that was committed last.
 */
import { closeSync, constants, fdatasync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import { findAuditCut, findAuditRow, lastAuditRow } from '../core/audit-store.js';
import type { Core } from '../core/core.js';
import type { Queryable } from '../database/schema.js';
import { type AuditKey, checkpointText, isSignedWith, type Mark, parseCheckpoint, signMark } from './checkpoint.js';
import type { ChainPlace } from './verify-chain.js';

/** In the data directory. */
export const AUDIT_HEAD_FILE = 'audit.head';

/** Bytes of one of the two places in the file, which take turns: a torn write leaves the other one whole. */
const SLOT = 512;
const SLOTS = 2;

interface AuditHeadOptions extends Pick<Core, 'clock' | 'logger'> {
  readonly file: string;
  readonly key: AuditKey;
}

/** How a store falls short of what was committed to it. */
export interface LostEvents {
  /** Events that are missing at the end; 0 when the event of that number is another one. */
  readonly missing: number;
  /** The last event of the store, 0 in an empty one. */
  readonly last_seq: number;
  /** The event that was committed last. */
  readonly expected_seq: number;
  readonly expected_hash: string;
}

/** Null for a store that holds every event up to the one in the file, and where there is no file of this audit key. */
export async function lostEvents(
  db: Queryable,
  { file, key }: Pick<AuditHeadOptions, 'file' | 'key'>,
): Promise<LostEvents | null> {
  const head = readHead(file, key);
  if (head === null) return null;
  const last = (await lastAuditRow(db))?.seq ?? 0;
  const cut = (await findAuditCut(db))?.seq ?? 0;
  if (head.seq <= cut) return null;
  const lost = { last_seq: Math.max(last, cut), expected_seq: head.seq, expected_hash: head.hash };
  if (head.seq > lost.last_seq) return { missing: head.seq - lost.last_seq, ...lost };
  const row = await findAuditRow(db, head.seq);
  return row?.hash === head.hash ? null : { missing: 0, ...lost };
}

/** What the person who starts the orchestrator has to know and to choose. */
export function lostEventsFault(dataDir: string, lost: LostEvents): Fault {
  const { missing, last_seq, expected_seq } = lost;
  const events = missing === 1 ? 'its newest event is' : `its ${missing} newest events are`;
  const message =
    missing === 0
      ? `the store in ${dataDir} is not the one that was used last: its audit event ${expected_seq} is another one`
      : `the store in ${dataDir} ends too early: ${events} missing, it goes up to audit event ${last_seq} of ${expected_seq}`;
  return new Fault(
    'data_dir_invalid',
    `${message}; what was acknowledged with them is lost, such as removals of operators`,
    {
      hint: 'put a backup in its place with "orch serve restore FILE", or go on without them with "orch serve --new-epoch"',
      data: { ...lost },
    },
  );
}

/** The newer one of the two places; null when neither holds a place that this key has signed. */
export function readHead(file: string, key: AuditKey): Mark | null {
  let text: string;
  try {
    text = readFileSync(file, 'latin1');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
  let newest: Mark | null = null;
  for (let slot = 0; slot < SLOTS; slot += 1) {
    const mark = parseCheckpoint(text.slice(slot * SLOT, (slot + 1) * SLOT));
    if (mark === null || !isSignedWith(key, mark)) continue;
    if (newest === null || mark.epoch > newest.epoch || (mark.epoch === newest.epoch && mark.seq > newest.seq))
      newest = mark;
  }
  return newest;
}

/**
 * Writes the file. Each commit is in it before its writer is told, so that the death of the process loses neither; it is on
 * the disk a moment later, because the file may lag behind the database after a power cut and must not go ahead of it.
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

  /** Begins with the end of the log as it is now, which takes the place of whatever the file held. */
  open(epoch: number, place: ChainPlace): void {
    const { file } = this.options;
    this.epoch = epoch;
    this.attempt(() => {
      // Never truncated: what is overwritten needs no room on a full disk.
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

  /** To be called after each commit, before its writers are told. Never throws: the commit stands. */
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
      await new Promise<void>((resolve) => fdatasync(descriptor, () => resolve()));
    }
  }

  private attempt(work: () => void): void {
    try {
      work();
      this.hasFailed = false;
    } catch (error) {
      if (this.hasFailed) return;
      this.hasFailed = true;
      const { file, logger } = this.options;
      logger.error('the end of the audit log could not be noted beside the store', { file, reason: messageOf(error) });
    }
  }
}

function syncDirectory(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
