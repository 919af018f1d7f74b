/** Loads better-sqlite3, which is a native and optional dependency, when the store is opened and not before. */
import type BetterSqlite3 from 'better-sqlite3';
import { Fault, messageOf } from '../../src/kernel/fault.js';

export type Sqlite = typeof BetterSqlite3;

/** The first release that has the fix for the WAL reset bug, which can corrupt a database. */
const OLDEST = [3, 51, 3] as const;

const CURRENT = 'better-sqlite3-13';
const FORMER = 'better-sqlite3';
const MEND = 'install orch again with its optional packages (npm install --include=optional)';

interface NodeVersions {
  readonly node: string;
  /** The Node-API that it has. */
  readonly napi: string;
}

/**
 * The packages that fit a Node, the best first. Release 13 of better-sqlite3 needs Node-API 10, which no Node 20 has. Release
 * 12 aborts the process when it is compiled for Node 24.19 or later: its objects then take back a hook of an environment that
 * is gone when they are collected.
 */
export function sqlitePackages({ node, napi }: NodeVersions): readonly string[] {
  return [...(Number(napi) >= 10 ? [CURRENT] : []), ...(Number.parseInt(node, 10) < 24 ? [FORMER] : [])];
}

/** Throws `native_module_missing` when it is not installed, does not fit this Node, or brings too old a SQLite. */
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
  const why = firstLine(messageOf(failure));
  throw new Fault('native_module_missing', `${packages[0]} cannot be loaded: ${why}`, {
    hint: `the orchestrator needs it: ${MEND}`,
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

/** Throws whatever keeps the package from being used. */
async function load(name: string): Promise<Sqlite> {
  const { default: sqlite } = (await import(name)) as { readonly default: Sqlite };
  const probe = new sqlite(':memory:');
  const version = String(probe.prepare('select sqlite_version()').pluck().get());
  probe.close();
  if (!isSupportedSqlite(version)) throw new Error(`it brings SQLite ${version}, older than ${OLDEST.join('.')}`);
  return sqlite;
}

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';
