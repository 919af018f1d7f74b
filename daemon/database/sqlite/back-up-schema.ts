/** Backs a store in a file up before its schema is migrated. */
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Database as Connection } from 'better-sqlite3';
import type { Clock } from '../../../src/kernel/clock.js';
import { Fault, isFault, messageOf } from '../../../src/kernel/fault.js';
import { makeSchemaBackup } from '../schema-backups.js';
import { backupTo } from './copy.js';

interface BackUpOptions {
  /** Path of the store. */
  readonly file: string;
  readonly connection: Connection;
  /** Schema version of the store. */
  readonly schema: number;
  readonly clock: Pick<Clock, 'now'>;
}

/**
 * Backs the store up, deletes all but the newest backups, and returns the path of the new one.
 * Throws `disk_full` without room for the backup and the migration, `store_unavailable` when the backup cannot be written.
 */
export async function backUpSchema({ file, connection, schema, clock }: BackUpOptions): Promise<string> {
  const write = async (made: string): Promise<void> => {
    requireRoom(file, connection);
    try {
      await backupTo(connection, made);
    } catch (error) {
      if (!isFault(error)) throw error;
      throw new Fault('store_unavailable', `the store cannot be backed up before its migration: ${reasonOf(error)}`, {
        hint: `make ${dirname(file)} writable, with room for another copy of the store, and start again; ${UNCHANGED}`,
        cause: error.cause,
      });
    }
  };
  return makeSchemaBackup({ file, schema, clock, write });
}

/** The state that a failure before or during a migration leaves. */
export const UNCHANGED = 'the store is as it was, and the orch that ran before still starts with it';

/** Throws `disk_full` without room for a copy of the store, and as much again: a migration may write each page anew. */
function requireRoom(file: string, connection: Connection): void {
  const numberOf = (pragma: string): number => Number(connection.pragma(pragma, { simple: true }));
  const needed = 2 * numberOf('page_count') * numberOf('page_size');
  const { bavail, bsize } = statfsSync(dirname(file));
  const free = bavail * bsize;
  if (free >= needed) return;
  throw new Fault(
    'disk_full',
    `${file} has an older schema, and its backup and migration need ${mebibytes(needed)}: ${dirname(file)} has ${mebibytes(free)} free`,
    { hint: `free some space there, then start again; ${UNCHANGED}` },
  );
}

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

const reasonOf = (error: Fault): string => messageOf(error.cause ?? error);
