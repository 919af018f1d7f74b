/** Copies an open database into a file that is whole and durable once it has its name. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Database as Connection } from 'better-sqlite3';
import { Fault, messageOf } from '../../src/kernel/fault.js';

/** Takes the place of a file of that name. Other work goes on meanwhile, and is in the copy. */
export async function backupTo(connection: Connection, file: string): Promise<void> {
  const partial = `${file}.partial`;
  try {
    rmSync(partial, { force: true });
    closeSync(openSync(partial, 'wx', 0o600));
    await connection.backup(partial);
    sync(partial);
    renameSync(partial, file);
    sync(dirname(file));
  } catch (cause) {
    rmSync(partial, { force: true });
    throw new Fault('store_unavailable', `the store cannot be copied to ${file}: ${messageOf(cause)}`, {
      hint: 'choose a place that is writable and has room for the copy',
      cause,
    });
  }
}

/** Pages of one step, after which other work goes on. */
const STEP = 100;

/** Neither durable nor whole before the promise resolves. */
export async function copyTo(connection: Connection, file: string, signal: AbortSignal): Promise<void> {
  closeSync(openSync(file, 'wx', 0o600));
  await connection.backup(file, {
    progress: () => {
      signal.throwIfAborted();
      return STEP;
    },
  });
}

function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
