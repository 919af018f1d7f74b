/** Opens a store's file with plain SQLite, without the checks, changes and migrations of `openDatabase`. */
import type { Database as Connection } from 'better-sqlite3';
import { Fault, systemCodeOf } from '../../src/kernel/fault.js';
import { loadSqlite } from '../database/sqlite/load-sqlite.js';
import { schemaVersionOf } from '../database/sqlite/migrate.js';
import { isBusyError } from '../database/sqlite/sqlite-error.js';
import { EPOCH_KEY, epochOf } from '../engine/epoch.js';
import { type BackupNote, IDENTITY_KEY, NOTE_KEY, parseNote } from './backup-note.js';

/** Milliseconds to wait for another process's lock before the file counts as in use. */
const BUSY_MS = 500;

/**
 * Runs `work` on an existing file with an exclusive lock and returns its result. Merges a write-ahead log that a dead
 * process left. Throws `data_dir_locked` while the file is in use, and SQLite's own errors.
 */
export async function withRawStore<T>(file: string, work: (connection: Connection) => T): Promise<T> {
  const sqlite = await loadSqlite();
  const connection = new sqlite(file, { fileMustExist: true, timeout: BUSY_MS });
  try {
    connection.pragma('locking_mode = EXCLUSIVE');
    connection.pragma('trusted_schema = OFF');
    return work(connection);
  } catch (error) {
    throw isBusyError(error) ? inUse(file, error) : error;
  } finally {
    connection.close();
  }
}

export interface StoreFacts {
  readonly schema: number;
  readonly epoch: number;
  /** Last event of the audit log, `timestamp` in Unix milliseconds; null for an empty log. */
  readonly last: { readonly seq: number; readonly hash: string; readonly timestamp: number } | null;
  /** Usernames of the active operators, by ID. */
  readonly operators: ReadonlyMap<string, string>;
  /** Names of the approved agents, by node ID. */
  readonly agents: ReadonlyMap<string, string>;
  /** Note of the backup; null in a store that is not a backup. */
  readonly note: BackupNote | null;
  /** Public key of the store's orchestrator, hex; null when unknown. */
  readonly identity: string | null;
}

/** Returns the facts of a store of any schema version; null for a database that is not an orchestrator's store. */
export function readFacts(connection: Connection): StoreFacts | null {
  const schema = schemaVersionOf(connection);
  const known =
    "select count(*) from sqlite_master where type = 'table' and name in ('meta','operators','audit_events')";
  if (schema === 0 || connection.prepare(known).pluck().get() !== 3) return null;
  const meta = (key: string): string | null => {
    const value = connection.prepare('select value from meta where key = ?').pluck().get(key);
    return typeof value === 'string' ? value : null;
  };
  const last = connection.prepare('select seq, hash, timestamp from audit_events order by seq desc limit 1').get();
  const note = parseNote(meta(NOTE_KEY));
  return {
    schema,
    epoch: epochOf(meta(EPOCH_KEY)),
    last: (last as StoreFacts['last'] | undefined) ?? null,
    operators: names(connection, 'select operator_id, username from operators where removed_at is null'),
    agents: names(connection, "select node_id, coalesce(name, node_id) from agents where status = 'approved'"),
    note,
    identity: note?.public_key ?? (meta(IDENTITY_KEY) || null),
  };
}

function names(connection: Connection, sql: string): ReadonlyMap<string, string> {
  const rows = connection.prepare(sql).raw().all() as readonly (readonly [string, string])[];
  return new Map(rows);
}

/** Returns the first damage that the check finds; null for an intact file. */
export function damageOf(connection: Connection, check: 'quick_check' | 'integrity_check'): string | null {
  const found = String(connection.pragma(`${check}(1)`, { simple: true }));
  return found === 'ok' ? null : found;
}

/** Returns true for the error of a file that is damaged or not an SQLite database. */
export const isNoDatabase = (error: unknown): boolean =>
  /^SQLITE_(NOTADB|CORRUPT|IOERR)/.test(systemCodeOf(error) ?? '');

const inUse = (file: string, cause: unknown): Fault =>
  new Fault('data_dir_locked', `${file} is open in another process`, {
    hint: 'stop whatever reads the file, then try again',
    cause,
  });
