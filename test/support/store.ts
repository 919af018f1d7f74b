/** Opens the stores of tests: in SQLite files, or each in a database of one PostgreSQL, as `ORCH_TEST_STORE` says. */
import { randomBytes } from 'node:crypto';
import { describe, it, onTestFinished, TestRunner } from 'vitest';
import { type OpenDatabase, type OpenDatabaseOptions, openDatabase } from '../../daemon/database/database.js';
import type { StoreLocation } from '../../daemon/database/store-location.js';
import { hasUrl, releaseStore, TEST_STORE, urlOf } from './store-urls.js';
import { spoilDatabase } from './test-databases.js';

/** `it` and `describe` on SQLite; on PostgreSQL their tests are skipped, and say why. */
export const itOnSqlite = onSqlite(it);
export const describeOnSqlite = onSqlite(describe);

function onSqlite<T extends typeof it | typeof describe>(of: T): T {
  if (TEST_STORE === 'sqlite') return of;
  const skipped = (of as typeof it).skip;
  const titled = (title: string) => `${title} (skipped on PostgreSQL: about SQLite itself)`;
  const skip = (title: string, ...rest: readonly unknown[]) => skipped(titled(title), ...(rest as [never]));
  const each = (cases: readonly never[]) => (title: string, work: () => void) =>
    skipped.each(cases)(titled(title), work);
  return Object.assign(skip, { each }) as unknown as T;
}

/** Returns the store that stands for a path. */
export function locationOf(file: string): StoreLocation {
  const isNew = !hasUrl(file);
  const url = urlOf(file);
  if (url === null) return { file, server: null };
  if (isNew && TestRunner.getCurrentTest() !== undefined) onTestFinished(() => releaseStore(file));
  const processName = `orch test ${process.pid} ${randomBytes(4).toString('hex')}`;
  return { file, server: { url, password: { file: '', env: {} }, readers: 2, processName } };
}

type TestDatabaseOptions = Omit<OpenDatabaseOptions, 'server'> & { readonly server?: OpenDatabaseOptions['server'] };

/** Counts the statements and transactions of a database that have no answer yet. */
export function countRunning({ db }: Pick<OpenDatabase, 'db'>): () => number {
  let running = 0;
  const executor = db.getExecutor();
  const provide = executor.provideConnection.bind(executor);
  executor.provideConnection = async (consumer) => {
    running += 1;
    try {
      return await provide(consumer);
    } finally {
      running -= 1;
    }
  };
  return () => running;
}

/** Opens the store that stands for `file`. */
export async function openTestDatabase(options: TestDatabaseOptions): Promise<OpenDatabase> {
  const server = options.server ?? locationOf(options.file).server;
  if (server === null) return openDatabase({ ...options, server });
  if (options.migrations !== undefined) spoilDatabase(server.url);
  // The clock of a test is not that of the server, which a store refuses.
  return openDatabase({ ...options, server, clock: Date });
}
