/**
 * Looks at the file of a stopped orchestrator's store. Reads bytes and opens nothing with SQLite on disk, which would
 * write: it merges a log, and root would leave files that the orchestrator's user cannot open.
 */
import { closeSync, openSync, readFileSync, readSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { MIGRATIONS } from '../../daemon/database/migrations/index.js';
import { backupToRestore } from '../../daemon/database/schema-backups.js';
import { loadSqlite } from '../../daemon/database/sqlite/load-sqlite.js';
import { messageOf } from '../../src/kernel/fault.js';
import { type DoctorCheck, note, ok, problem } from '../../src/programs/doctor-check.js';

const NAME = 'serve store';
const MIB = 2 ** 20;
/** Largest store whose every page is checked, in bytes: it is read into memory. */
const CHECKED = 128 * MIB;
const RESTORE = 'put a backup in its place: orch serve restore FILE';

/** @param pid process of the running orchestrator; null when it is stopped */
export async function storeCheck(directory: string, pid: number | null): Promise<DoctorCheck> {
  const file = join(directory, 'orch.db');
  const size = sizeOf(file);
  if (size === null) return note(NAME, 'there is none yet; the first start makes it');
  if (pid !== null) return ok(NAME, `process ${pid} uses it, and checks it for damage after each start`);
  const header = headerOf(file);
  if (header === null) return problem(NAME, `${file} is no database, or damaged at its begin`, RESTORE);
  const newest = MIGRATIONS.at(-1)?.version ?? 0;
  const { schema } = header;
  if (schema > newest) {
    const backup = backupToRestore(file, newest);
    const back = backup === null ? '' : `, or go back: orch serve restore ${backup}`;
    const found = `${file} has schema ${schema}, and this orch knows schemas up to ${newest}`;
    return problem(NAME, found, `install the orch that made it${back}`);
  }
  // The pages of the log are newer than those of the file, which says nothing without them.
  if ((sizeOf(`${file}-wal`) ?? 0) > 0) {
    return note(NAME, 'the orchestrator was not stopped in order; its next start checks the store');
  }
  if (header.bytes > size) {
    return problem(NAME, `${file} is cut off: it has ${size} bytes of ${header.bytes}`, RESTORE);
  }
  const damage = size > CHECKED ? null : await damageOf(file);
  if (damage !== null) return problem(NAME, `${file} is damaged: ${damage}`, RESTORE);
  const depth = size > CHECKED ? 'only its header was checked, for its size' : 'whole';
  return schema < newest
    ? upgradeCheck({ file, size, schema, newest })
    : ok(NAME, `${Math.ceil(size / MIB)} MiB, ${depth}`);
}

interface Upgrade {
  readonly file: string;
  readonly size: number;
  readonly schema: number;
  readonly newest: number;
}

/** Compares the room with what the backup and the migration of the next start need. */
function upgradeCheck({ file, size, schema, newest }: Upgrade): DoctorCheck {
  const found = `it has schema ${schema}; the next start backs it up and migrates it to ${newest}`;
  const { bavail, bsize } = statfsSync(file);
  const needed = 2 * size;
  if (bavail * bsize >= needed) return note(NAME, found);
  const lack = Math.ceil((needed - bavail * bsize) / MIB);
  return problem(NAME, `${found}, for which ${lack} MiB are missing`, 'free as much on its file system');
}

interface Header {
  readonly schema: number;
  /** Size of the whole file, as its header says; 0 if it does not. */
  readonly bytes: number;
}

/** Reads the header: https://www.sqlite.org/fileformat.html, section 1.3. Returns null for another file. */
function headerOf(file: string): Header | null {
  const header = Buffer.alloc(100);
  const descriptor = openSync(file, 'r');
  try {
    if (readSync(descriptor, header) < header.length) return null;
  } finally {
    closeSync(descriptor);
  }
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') return null;
  const size = header.readUInt16BE(16);
  // The size is stale after a program that did not write it: then the two counters differ.
  const pages = header.readUInt32BE(24) === header.readUInt32BE(92) ? header.readUInt32BE(28) : 0;
  return { schema: header.readUInt32BE(60), bytes: pages * (size === 1 ? 65_536 : size) };
}

/** Checks every page in memory. Returns the damage, or null also where that is not possible. */
async function damageOf(file: string): Promise<string | null> {
  let sqlite: Awaited<ReturnType<typeof loadSqlite>>;
  try {
    sqlite = await loadSqlite();
  } catch {
    // Another check reports the missing module.
    return null;
  }
  const bytes = readFileSync(file);
  // A database in memory cannot have a write-ahead log; bytes 18 and 19 say that this one has.
  bytes.fill(1, 18, 20);
  try {
    const connection = new sqlite(bytes);
    try {
      const found = String(connection.pragma('quick_check(1)', { simple: true }));
      return found === 'ok' ? null : found;
    } finally {
      connection.close();
    }
  } catch (error) {
    return messageOf(error);
  }
}

const sizeOf = (file: string): number | null => statSync(file, { throwIfNoEntry: false })?.size ?? null;
