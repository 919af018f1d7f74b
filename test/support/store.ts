/** Opens the stores of tests: in SQLite files, or each in a database of one PostgreSQL, as `ORCH_TEST_STORE` says. */
import { randomBytes } from 'node:crypto';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, TestRunner } from 'vitest';
import {
  type OpenDatabase,
  type OpenDatabaseOptions,
  openDatabase,
  type StoreLocation,
} from '../../daemon/database/database.js';
import { isListed } from './postgres-suites.js';
import { freeDatabase, spoilDatabase, takeDatabase } from './test-databases.js';

export const TEST_STORE: 'sqlite' | 'postgres' = process.env.ORCH_TEST_STORE === 'postgres' ? 'postgres' : 'sqlite';

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

/** URLs of the databases that stand for paths. */
const urls = new Map<string, string>();

/** Returns the URL of the database that stands for a path, the same one until `releaseStore`; null for tests on SQLite. */
export function urlOf(file: string): string | null {
  refuseUnlisted();
  if (TEST_STORE === 'sqlite') return null;
  const known = urls.get(file);
  if (known !== undefined) return known;
  const url = takeDatabase();
  urls.set(file, url);
  return url;
}

/** Throws in a suite that is not in the lists of `postgres-suites.ts`, so that it cannot be left out on PostgreSQL by mistake. */
function refuseUnlisted(): void {
  const { testPath } = expect.getState();
  if (testPath === undefined) return;
  const suite = relative(fileURLToPath(new URL('../..', import.meta.url)), testPath);
  if (!isListed(suite)) throw new Error(`${suite} uses a store: add it to ON_BOTH in test/support/postgres-suites.ts`);
}

/** Gives the database back that stands for a path, if there is one. */
export function releaseStore(file: string): void {
  const url = urls.get(file);
  if (url === undefined) return;
  urls.delete(file);
  freeDatabase(url);
}

/** Returns the store that stands for a path. */
export function locationOf(file: string): StoreLocation {
  const isNew = !urls.has(file);
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
