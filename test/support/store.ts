/** Opens the stores of tests: in SQLite files, or each in a database of one PostgreSQL, as `ORCH_TEST_STORE` says. */
import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import {
  type OpenDatabase,
  type OpenDatabaseOptions,
  openDatabase,
  type StoreLocation,
} from '../../daemon/database/database.js';

export const TEST_STORE: 'sqlite' | 'postgres' = process.env.ORCH_TEST_STORE === 'postgres' ? 'postgres' : 'sqlite';

/** Why a test of SQLite's files does not run now, or false. */
export const onlySqlite = TEST_STORE === 'postgres' ? 'it tests SQLite itself' : false;

/** Name of the database that every test's database is a copy of. */
export const TEMPLATE = 'orch_template';

const made = new Map<string, Promise<string>>();
let processes = 0;

/** Returns the store that stands for a path: the same one each time in this process. */
export async function locationOf(file: string): Promise<StoreLocation> {
  if (TEST_STORE === 'sqlite') return { file, server: null };
  let url = made.get(file);
  if (url === undefined) {
    url = makeDatabase(`t_${createHash('sha256').update(file).digest('hex').slice(0, 24)}`);
    made.set(file, url);
    onTestFinished(() => dropDatabase(file));
  }
  processes += 1;
  const processName = `orch test ${process.pid} ${processes} ${randomBytes(4).toString('hex')}`;
  return { file, server: { url: await url, password: { file: '', env: {} }, readers: 4, processName } };
}

type TestDatabaseOptions = Omit<OpenDatabaseOptions, 'server'> & { readonly server?: OpenDatabaseOptions['server'] };

/** Opens the store that stands for `file`. */
export async function openTestDatabase(options: TestDatabaseOptions): Promise<OpenDatabase> {
  const server = options.server ?? (await locationOf(options.file)).server;
  return openDatabase({ ...options, server });
}

async function makeDatabase(name: string): Promise<string> {
  const server = process.env.ORCH_TEST_POSTGRES;
  if (server === undefined) throw new Error('ORCH_TEST_POSTGRES names no server: the setup of the tests did not run');
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    await client.query(`create database "${name}" template "${TEMPLATE}"`);
  } finally {
    await client.end();
  }
  return server.replace(/\/[^/]*$/, `/${name}`);
}

async function dropDatabase(file: string): Promise<void> {
  const url = await made.get(file);
  if (url === undefined) return;
  made.delete(file);
  const client = new pg.Client({ connectionString: url.replace(/\/[^/]*$/, '/postgres') });
  await client.connect();
  try {
    await client.query(`drop database if exists "${url.split('/').at(-1)}" with (force)`);
  } finally {
    await client.end();
  }
}
