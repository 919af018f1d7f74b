/**
 * Records the last committed audit event in a file beside the database. A database with a damaged write-ahead log opens
 * silently without its newest commits; this file reveals the loss.
 */
import { closeSync, constants, fdatasync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import { findAuditCut, findAuditRow, lastAuditRow } from '../core/audit-store.js';
import type { Core } from '../core/core.js';
import type { Queryable } from '../database/schema.js';
import { type AuditKey, checkpointText, isSignedWith, type Mark, parseCheckpoint, signMark } from './checkpoint.js';
import type { ChainPlace } from './verify-chain.js';

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
  /** Number of events missing at the end; 0 when the event `expected_seq` exists with another hash. */
  readonly missing: number;
  /** Number of the last event in the store; 0 for an empty store. */
  readonly last_seq: number;
  /** Number of the event that was committed last. */
  readonly expected_seq: number;
  readonly expected_hash: string;
}

/**
 * Returns the lost events; null when the store holds the event of the file or has pruned it. Also null without a file
 * signed with this audit key.
 */
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

/** Returns the fault `data_dir_invalid`, which explains the loss and the choices to the person who starts the orchestrator. */
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

/** Returns the newer of the two slots; null when neither holds a place signed with this key. */
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
