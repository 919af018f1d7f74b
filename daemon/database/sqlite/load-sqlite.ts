/** Loads better-sqlite3, a native and optional dependency, only when the store is opened. */
import type BetterSqlite3 from 'better-sqlite3';
import { Fault } from '../../../src/kernel/fault.js';
import { COMPILE_HINT, loadFailure } from '../../../src/kernel/native-libraries.js';

export type Sqlite = typeof BetterSqlite3;

/** Oldest SQLite release with the fix for the WAL reset bug, which can corrupt a database. */
const OLDEST = [3, 51, 3] as const;

const CURRENT = 'better-sqlite3-13';
const FORMER = 'better-sqlite3';

interface NodeVersions {
  readonly node: string;
  /** Supported version of Node-API. */
  readonly napi: string;
}

/**
 * Returns the packages that work on this Node, best first. Release 13 of better-sqlite3 needs Node-API 10, which Node
 * 20 lacks. Release 12 aborts the process when compiled for Node 24.19 or later: on collection, its objects remove a
 * hook from an environment that no longer exists.
 */
export function sqlitePackages({ node, napi }: NodeVersions): readonly string[] {
  return [...(Number(napi) >= 10 ? [CURRENT] : []), ...(Number.parseInt(node, 10) < 24 ? [FORMER] : [])];
}

/**
 * Returns better-sqlite3. Throws `native_module_missing` when it is not installed, does not work on this Node, or
 * brings too old a SQLite.
 */
export async function loadSqlite(): Promise<Sqlite> {
  const { node, napi = '0' } = process.versions;
  const packages = sqlitePackages({ node, napi });
  let failure: unknown;
  for (const name of packages) {
    try {
      return await load(name);
    } catch (error) {
      failure ??= error;
    }
  }
  throw new Fault('native_module_missing', `${packages[0]} cannot be loaded: ${loadFailure(failure)}`, {
    hint: `the orchestrator needs it: ${COMPILE_HINT}`,
    cause: failure,
  });
}

export function isSupportedSqlite(version: string): boolean {
  const parts = version.split('.').map(Number);
  for (const [index, least] of OLDEST.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}

/** Loads one package. Throws when it cannot be used. */
async function load(name: string): Promise<Sqlite> {
  const { default: sqlite } = (await import(name)) as { readonly default: Sqlite };
  const probe = new sqlite(':memory:');
  const version = String(probe.prepare('select sqlite_version()').pluck().get());
  probe.close();
  if (!isSupportedSqlite(version)) throw new Error(`it brings SQLite ${version}, older than ${OLDEST.join('.')}`);
  return sqlite;
}
