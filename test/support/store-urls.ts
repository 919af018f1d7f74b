/** Databases of PostgreSQL that stand for the paths of stores, as `ORCH_TEST_STORE` says. Works outside of the test runner as well. */
import { freeDatabase, takeDatabase } from './test-databases.js';

export const TEST_STORE: 'sqlite' | 'postgres' = process.env.ORCH_TEST_STORE === 'postgres' ? 'postgres' : 'sqlite';

/** URLs of the databases that stand for paths. */
const urls = new Map<string, string>();
/** Throws when the current suite may not use a store. */
let check: () => void = () => {};

/** Calls `required` before each use of a store from now on. */
export function checkBeforeUse(required: () => void): void {
  check = required;
}

/** Returns the URL of the database that stands for a path, the same one until `releaseStore`; null for tests on SQLite. */
export function urlOf(file: string): string | null {
  check();
  if (TEST_STORE === 'sqlite') return null;
  const known = urls.get(file);
  if (known !== undefined) return known;
  const url = takeDatabase();
  urls.set(file, url);
  return url;
}

/** Returns true for a path that a database stands for. */
export const hasUrl = (file: string): boolean => urls.has(file);

/** Gives the database back that stands for a path, if there is one. */
export function releaseStore(file: string): void {
  const url = urls.get(file);
  if (url === undefined) return;
  urls.delete(file);
  freeDatabase(url);
}
