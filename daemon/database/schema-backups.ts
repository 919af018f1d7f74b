/**
 * Backups of the store that are made before each migration: `orch.db.schema-<schema>-<time>` in the data directory, beside a store
 * in a file. A release that knows only the old schema restores them.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';

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

interface MakeOptions {
  /** Path of the store's file, or its default path in the data directory for a store on PostgreSQL. */
  readonly file: string;
  /** Schema version of the store. */
  readonly schema: number;
  readonly clock: Pick<Clock, 'now'>;
  /** Writes the backup to a new file. */
  readonly write: (file: string) => Promise<void>;
}

/** Makes a backup, deletes all but the newest ones, and returns the path of the new one. Throws as `write` does. */
export async function makeSchemaBackup({ file, schema, clock, write }: MakeOptions): Promise<string> {
  // An interrupted backup leaves a partial file that no later backup replaces.
  for (const name of namesBeside(file)) if (name.endsWith(PARTIAL)) rmSync(join(dirname(file), name));
  const made = `${file}.schema-${schema}-${new Date(clock.now()).toISOString().replaceAll(':', '-')}`;
  await write(made);
  // Not by time alone: after the clock was set back, the new backup would sort as the oldest.
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

interface TooNew {
  /** The store, for the message. */
  readonly place: string;
  /** As of `MakeOptions`. */
  readonly file: string;
  /** Schema versions: of the store, and the newest that this program knows. */
  readonly found: number;
  readonly known: number;
}

/** Returns the fault of a store that a later program has migrated, with the backup to go back to. */
export function schemaTooNew({ place, file, found, known }: TooNew): Fault {
  const backup = backupToRestore(file, known);
  const back =
    backup === null
      ? `there is no backup of an older schema in ${dirname(file)}`
      : `to go back to the time before its migration, and lose what happened since: orch serve restore ${backup}`;
  return new Fault('schema_too_new', `${place} has schema ${found}, this program knows schemas up to ${known}`, {
    hint: `install the orch that made it, or a newer one; ${back}`,
  });
}

/** Names of the backups; none if the directory is missing, which the write reports. */
const namesBeside = (file: string): readonly string[] =>
  existsSync(dirname(file))
    ? readdirSync(dirname(file)).filter((name) => name.startsWith(`${basename(file)}.schema-`))
    : [];
