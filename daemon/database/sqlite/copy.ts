/** Copies the open store to other files. */
import { closeSync, openSync, rmSync } from 'node:fs';
import type { Database as Connection } from 'better-sqlite3';
import { renameDurably, syncFile } from '../../../src/disk/durable.js';
import { Fault, isFault, messageOf } from '../../../src/kernel/fault.js';

/**
 * Copies the database to a file durably, replacing an existing one. Work that continues meanwhile is included in the
 * copy. Throws `store_unavailable`.
 */
export async function backupTo(connection: Connection, file: string): Promise<void> {
  await sealPartial(file, async (partial) => {
    closeSync(openSync(partial, 'wx', 0o600));
    await connection.backup(partial);
  });
}

/** Lets `write` make a file beside `file`, and puts it in its place durably. Throws `store_unavailable`. */
export async function sealPartial(file: string, write: (partial: string) => Promise<void>): Promise<void> {
  const partial = `${file}.partial`;
  try {
    rmSync(partial, { force: true });
    await write(partial);
    syncFile(partial);
    renameDurably(partial, file);
  } catch (cause) {
    rmSync(partial, { force: true });
    if (isFault(cause)) throw cause;
    throw new Fault('store_unavailable', `the store cannot be copied to ${file}: ${messageOf(cause)}`, {
      hint: 'choose a place that is writable and has room for the copy',
      cause,
    });
  }
}

/** Pages copied per step, between which other work continues. */
const STEP = 100;

/** Copies the database to a new file. The copy is incomplete until the promise resolves, and is not synced to disk. */
export async function copyTo(connection: Connection, file: string, signal: AbortSignal): Promise<void> {
  closeSync(openSync(file, 'wx', 0o600));
  await connection.backup(file, {
    progress: () => {
      signal.throwIfAborted();
      return STEP;
    },
  });
}
