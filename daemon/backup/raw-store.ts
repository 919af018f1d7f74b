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
export async function withRawStore<T>(file: string, work: (connection: Connection) => T | Promise<T>): Promise<T> {
  const sqlite = await loadSqlite();
  const connection = new sqlite(file, { fileMustExist: true, timeout: BUSY_MS });
  try {
    connection.pragma('locking_mode = EXCLUSIVE');
    connection.pragma('trusted_schema = OFF');
    return await work(connection);
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

/** Statements that read the facts of a store of any schema version, in any engine. */
export const FACTS = {
  meta: `select key, value from meta where key in ('${EPOCH_KEY}', '${NOTE_KEY}', '${IDENTITY_KEY}')`,
  last: 'select seq, hash, timestamp from audit_events order by seq desc limit 1',
  operators: 'select operator_id as id, username as name from operators where removed_at is null',
  agents: "select node_id as id, coalesce(name, node_id) as name from agents where status = 'approved'",
} as const;

/** Rows of each of the statements. */
export type FactRows = { readonly [K in keyof typeof FACTS]: readonly Readonly<Record<string, unknown>>[] };

export function factsOf(schema: number, rows: FactRows): StoreFacts {
  const values = new Map(rows.meta.map(({ key, value }) => [key, typeof value === 'string' ? value : null]));
  const note = parseNote(values.get(NOTE_KEY) ?? null);
  return {
    schema,
    epoch: epochOf(values.get(EPOCH_KEY) ?? null),
    last: (rows.last[0] as StoreFacts['last'] | undefined) ?? null,
    operators: names(rows.operators),
    agents: names(rows.agents),
    note,
    identity: note?.public_key ?? (values.get(IDENTITY_KEY) || null),
  };
}

const names = (rows: FactRows['operators']): ReadonlyMap<string, string> =>
  new Map(rows.map(({ id, name }) => [String(id), String(name)]));

/** Returns the facts of a store of any schema version; null for a database that is not an orchestrator's store. */
export function readFacts(connection: Connection): StoreFacts | null {
  const schema = schemaVersionOf(connection);
  const known =
    "select count(*) from sqlite_master where type = 'table' and name in ('meta','operators','audit_events')";
  if (schema === 0 || connection.prepare(known).pluck().get() !== 3) return null;
  const all = (statement: string) => connection.prepare(statement).all() as FactRows['meta'];
  return factsOf(schema, {
    meta: all(FACTS.meta),
    last: all(FACTS.last),
    operators: all(FACTS.operators),
    agents: all(FACTS.agents),
  });
}

/** Returns the first damage that the check finds; null for an intact file. */
export function damageOf(connection: Connection, check: 'quick_check' | 'integrity_check'): string | null {
  const found = String(connection.pragma(`${check}(1)`, { simple: true }));
  return found === 'ok' ? null : found;
}

/** Returns true for the error of a file that is damaged or not an SQLite database; false for a failing disk or too few resources. */
export const isDamage = (error: unknown): boolean => /^SQLITE_(NOTADB|CORRUPT)/.test(systemCodeOf(error) ?? '');

const inUse = (file: string, cause: unknown): Fault =>
  new Fault('data_dir_locked', `${file} is open in another process`, {
    hint: 'stop whatever reads the file, then try again',
    cause,
  });
