/** Loads better-sqlite3, which is a native and optional dependency, when the store is opened and not before. */
import type BetterSqlite3 from 'better-sqlite3';
import { Fault, messageOf } from '../../src/kernel/fault.js';

export type Sqlite = typeof BetterSqlite3;

/** The first release that has the fix for the WAL reset bug, which can corrupt a database. */
const OLDEST = [3, 51, 3] as const;

/** Throws `native_module_missing` when it is not installed, does not fit this Node, or brings too old a SQLite. */
export async function loadSqlite(): Promise<Sqlite> {
  const { sqlite, version } = await load();
  if (!isSupportedSqlite(version)) {
    throw new Fault(
      'native_module_missing',
      `better-sqlite3 brings SQLite ${version}, older than ${OLDEST.join('.')}`,
      {
        hint: 'update it with: npm install better-sqlite3@latest',
      },
    );
  }
  return sqlite;
}

export function isSupportedSqlite(version: string): boolean {
  const parts = version.split('.').map(Number);
  for (const [index, least] of OLDEST.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}

async function load(): Promise<{ sqlite: Sqlite; version: string }> {
  try {
    const { default: sqlite } = await import('better-sqlite3');
    const probe = new sqlite(':memory:');
    const version = String(probe.prepare('select sqlite_version()').pluck().get());
    probe.close();
    return { sqlite, version };
  } catch (cause) {
    throw new Fault('native_module_missing', `better-sqlite3 cannot be loaded: ${firstLine(messageOf(cause))}`, {
      hint: 'the orchestrator needs it; install it with: npm install better-sqlite3',
      cause,
    });
  }
}

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';
