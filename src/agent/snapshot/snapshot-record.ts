/**
 * The record of a snapshot in the agent's data directory: what an apply replaces, and whether it is to be restored. The agent and
 * the service beside it read it, and whoever holds the data directory writes it.
 */
import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile, syncDirectory } from '../../disk/durable.js';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { CheckReport } from '../../resources/checks/check.js';
import type { Restored } from '../../resources/restored.js';
import type { BootTime } from './boot-time.js';

/** A saved resource. */
export interface SavedItem {
  readonly kind: string;
  readonly identity: string;
  /** Ledger key of the resource. */
  readonly key: string;
  /** The action that the apply was about to take. */
  readonly action: string;
  /** State of the resource in the form of its kind; null if it cannot be restored. */
  readonly saved: object | null;
  /** Why it cannot be restored; null if it can. */
  readonly reason: string | null;
}

export type SnapshotState =
  /** The apply is in progress. */
  | 'applying'
  /** The apply has succeeded, and the machine has to come back until `deadline`. */
  | 'awaiting'
  /** The apply stays. */
  | 'confirmed'
  /** The apply is being undone. */
  | 'restoring'
  /** The apply is undone, and `restored` says how. */
  | 'restored';

export interface SnapshotRecord {
  readonly format: 1;
  readonly run_id: string;
  readonly state: SnapshotState;
  /** Null for a snapshot that is only kept: nothing is restored without a request. */
  readonly confirm_secs: number | null;
  /** True to keep it until the next apply. */
  readonly keeps: boolean;
  readonly deadline: BootTime | null;
  /** Why the apply is undone. */
  readonly why: string | null;
  /** In the order in which they were saved. */
  readonly items: readonly SavedItem[];
  readonly restored: Restored | null;
  /** Results of the health checks that ran before the wait; absent without them. */
  readonly checks?: readonly CheckReport[] | undefined;
}

const FILE = 'record.json';

export const snapshotDirectory = (dataDir: string): string => join(dataDir, 'snapshot');

/**
 * Returns the record; null without one. Throws `data_dir_invalid` for one that cannot be used: a link or a directory of another
 * user in its place is never followed, because what it says would be restored as root.
 */
export function readSnapshot(dataDir: string): SnapshotRecord | null {
  const directory = snapshotDirectory(dataDir);
  const path = join(directory, FILE);
  try {
    if (!isOwnDirectory(directory)) return null;
    const record = JSON.parse(readOwnFile(path).toString('utf8')) as SnapshotRecord;
    if (record.format !== 1) throw new Error(`it has the format ${record.format}`);
    return record;
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return null;
    throw new Fault('data_dir_invalid', `the snapshot ${path} cannot be read: ${messageOf(cause)}`, {
      hint: 'it holds what the last apply has replaced; delete its directory to give that up',
      cause,
    });
  }
}

/** True if a snapshot is there; its record may be unusable. */
export const hasSnapshot = (dataDir: string): boolean =>
  lstatSync(snapshotDirectory(dataDir), { throwIfNoEntry: false }) !== undefined;

/** Makes an empty directory for a snapshot. Whatever else has that name goes, and a link is not followed. */
export function makeSnapshotDirectory(dataDir: string): string {
  const directory = snapshotDirectory(dataDir);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { mode: 0o700 });
  syncDirectory(dataDir);
  return directory;
}

/** Replaces the record durably. */
export function writeSnapshot(dataDir: string, record: SnapshotRecord): void {
  const directory = snapshotDirectory(dataDir);
  replaceFile(join(directory, FILE), JSON.stringify(record));
}

/** Deletes the snapshot with everything that it holds. */
export function deleteSnapshot(dataDir: string): void {
  rmSync(snapshotDirectory(dataDir), { recursive: true, force: true });
  syncDirectory(dataDir);
}

const NOFOLLOW = constants.O_NOFOLLOW ?? 0;

/** Reads a file of a snapshot. Throws the system's error, or an error for one of another user. */
export function readOwnFile(path: string): Buffer {
  const descriptor = openSync(path, constants.O_RDONLY | NOFOLLOW);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile() || !isOwn(stats.uid)) throw new Error(`${path} is no file of this agent`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function isOwnDirectory(path: string): boolean {
  const stats = lstatSync(path);
  if (stats.isDirectory() && isOwn(stats.uid) && (process.platform === 'win32' || (stats.mode & 0o077) === 0))
    return true;
  throw new Error(`${path} is no private directory of this agent`);
}

const isOwn = (uid: number): boolean => process.geteuid === undefined || uid === process.geteuid();
