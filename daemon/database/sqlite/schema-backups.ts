/**
 * Backups of the store that are made before each migration, beside the store: `orch.db.schema-<schema>-<time>`. A release
 * that knows only the old schema restores them.
 */
import { readdirSync, rmSync, statfsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Database as Connection } from 'better-sqlite3';
import type { Clock } from '../../../src/kernel/clock.js';
import { Fault, isFault, messageOf } from '../../../src/kernel/fault.js';
import { backupTo } from './copy.js';

interface SchemaBackup {
  readonly file: string;
  /** Schema version of its contents. */
  readonly schema: number;
  /** Time of its making, which sorts as text. */
  readonly stamp: string;
}

/** Backups that are kept, the new one included. */
const KEPT = 2;
const PARTIAL = '.partial';

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
  // A backup that was cut off leaves its beginning under a name that no later one has.
  for (const name of namesBeside(file)) if (name.endsWith(PARTIAL)) rmSync(join(dirname(file), name));
  requireRoom(file, connection);
  const made = `${file}.schema-${schema}-${new Date(clock.now()).toISOString().replaceAll(':', '-')}`;
  try {
    await backupTo(connection, made);
  } catch (error) {
    if (!isFault(error)) throw error;
    throw new Fault('store_unavailable', `the store cannot be backed up before its migration: ${reasonOf(error)}`, {
      hint: `make ${dirname(file)} writable, with room for another copy of the store, and start again; ${UNCHANGED}`,
      cause: error.cause,
    });
  }
  // Not by time alone: with a clock that was set back, the new one would count as the oldest.
  const others = listSchemaBackups(file).filter((one) => one.file !== made);
  for (const old of others.slice(KEPT - 1)) rmSync(old.file, { force: true });
  return made;
}

/** Returns the backups beside a store, newest first. */
function listSchemaBackups(file: string): readonly SchemaBackup[] {
  return namesBeside(file)
    .flatMap((name) => {
      const [, schema, stamp] = /\.schema-(\d+)-([\dTZ.-]+)$/.exec(name) ?? [];
      if (schema === undefined || stamp === undefined) return [];
      return [{ file: join(dirname(file), name), schema: Number(schema), stamp }];
    })
    .sort((a, b) => (a.stamp < b.stamp ? 1 : -1));
}

/** Returns the newest backup of the highest schema that this program knows; null without one. */
export function backupToRestore(file: string, newest: number): string | null {
  const known = listSchemaBackups(file).filter(({ schema }) => schema <= newest);
  const highest = Math.max(...known.map(({ schema }) => schema));
  return known.find(({ schema }) => schema === highest)?.file ?? null;
}

/** What a failure before or during a migration leaves. */
export const UNCHANGED = 'the store is as it was, and the orch that ran before still starts with it';

const namesBeside = (file: string): readonly string[] =>
  readdirSync(dirname(file)).filter((name) => name.startsWith(`${basename(file)}.schema-`));

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
