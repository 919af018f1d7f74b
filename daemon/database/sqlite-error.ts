/** What SQLite's own errors mean for us. */
import { Fault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';

/** Out of room or of memory, or no longer writable: nothing was written, reading goes on, later it may work again. */
const REFUSED = ['SQLITE_FULL', 'SQLITE_NOMEM', 'SQLITE_READONLY', 'SQLITE_CANTOPEN', 'SQLITE_BUSY', 'SQLITE_LOCKED'];
/** The file or the disk below it fails, so that even a refused commit may have been written. */
const FATAL = ['SQLITE_IOERR', 'SQLITE_CORRUPT', 'SQLITE_NOTADB'];

const hasCode = (error: unknown, codes: readonly string[]): boolean => {
  const code = systemCodeOf(error) ?? '';
  return codes.some((known) => code === known || code.startsWith(`${known}_`));
};

/** True for errors after which nothing that the open database says can be relied on. */
export const isFatalSqliteError = (error: unknown): boolean => hasCode(error, FATAL);

/** What a fatal error means to the person who runs the orchestrator, and what helps. */
export function fatalFault(file: string, error: unknown): Fault {
  if (hasCode(error, ['SQLITE_IOERR'])) {
    return new Fault('store_unavailable', `the disk below ${file} fails: ${messageOf(error)}`, {
      hint: 'look at the disk and at the log of the kernel, then start the orchestrator again',
      cause: error,
    });
  }
  return new Fault('data_dir_invalid', `${file} is damaged or no database: ${messageOf(error)}`, {
    hint: 'put a backup in its place: orch serve restore FILE',
    cause: error,
  });
}

export const isBusyError = (error: unknown): boolean => hasCode(error, ['SQLITE_BUSY', 'SQLITE_LOCKED']);

/** True for the error of a statement that breaks a unique index or a primary key. */
export const isUniqueViolation = (error: unknown): boolean =>
  hasCode(error, ['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT_PRIMARYKEY']);

/** `store_unavailable` for what the disk refuses; everything else is a mistake of ours and stays as it is. */
export function storeFault(error: unknown): unknown {
  if (hasCode(error, ['SQLITE_FULL'])) {
    return new Fault('store_unavailable', 'the disk of the data directory is full, nothing was written', {
      hint: 'free some space there, then try again',
      cause: error,
    });
  }
  if (!isFatalSqliteError(error) && !hasCode(error, REFUSED)) return error;
  return new Fault('store_unavailable', `the store cannot be used: ${messageOf(error)}`, {
    hint: 'look at the log of the orchestrator',
    cause: error,
  });
}
