/** Classifies SQLite's errors and translates them into faults. */
import { basename } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../../src/kernel/fault.js';
import { damagedRecord } from '../stored-json.js';

/** Codes for no space, no memory or no write access: nothing was written, reads continue, and a retry may succeed. */
const REFUSED = ['SQLITE_FULL', 'SQLITE_NOMEM', 'SQLITE_READONLY', 'SQLITE_CANTOPEN', 'SQLITE_BUSY', 'SQLITE_LOCKED'];
/** Codes for a failing file or disk: even a refused commit may have been written. */
const FATAL = ['SQLITE_IOERR', 'SQLITE_CORRUPT', 'SQLITE_NOTADB'];

const hasCode = (error: unknown, codes: readonly string[]): boolean => {
  const code = systemCodeOf(error) ?? '';
  return codes.some((known) => code === known || code.startsWith(`${known}_`));
};

/** Returns true for errors after which no answer of the open database is reliable. */
export const isFatalSqliteError = (error: unknown): boolean => hasCode(error, FATAL);

/** Returns a fault that explains a fatal error to the person who runs the orchestrator, with a remedy. */
export function fatalFault(file: string, error: unknown): Fault {
  if (hasCode(error, ['SQLITE_IOERR'])) {
    return new Fault('store_unavailable', `the disk below ${file} fails: ${messageOf(error)}`, {
      hint: 'look at the disk and at the log of the kernel, then start the orchestrator again',
      cause: error,
    });
  }
  // A damaged frame of the log ends what SQLite reads of it, which can leave the database without pages that it names.
  const files = `${file}, or ${basename(file)}-wal beside it,`;
  return new Fault('data_dir_invalid', `${files} is damaged or no database: ${messageOf(error)}`, {
    hint: 'put a backup in its place: orch serve restore FILE',
    cause: error,
  });
}

export const isBusyError = (error: unknown): boolean => hasCode(error, ['SQLITE_BUSY', 'SQLITE_LOCKED']);

/** Returns `store_unavailable` for errors of the disk. Other errors are bugs and are returned unchanged. */
export function storeFault(error: unknown): unknown {
  if (hasCode(error, ['SQLITE_FULL'])) {
    return new Fault('store_unavailable', 'the disk of the data directory is full, nothing was written', {
      hint: 'free some space there, then try again',
      cause: error,
    });
  }
  // A function of SQLite's on a text that is not JSON.
  if (hasCode(error, ['SQLITE_ERROR']) && messageOf(error) === 'malformed JSON') return damagedRecord(error);
  if (!isFatalSqliteError(error) && !hasCode(error, REFUSED)) return error;
  return new Fault('store_unavailable', `the store cannot be used: ${messageOf(error)}`, {
    hint: 'look at the log of the orchestrator',
    cause: error,
  });
}
