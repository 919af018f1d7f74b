/** Before tests on PostgreSQL: starts one server for all of them, with a database that theirs are copies of. */
import { openDatabase } from '../../daemon/database/database.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { TestPostgres } from './postgres.js';
import { psql, RESET_FUNCTION, TEMPLATE } from './test-databases.js';

/** Vitest calls it once, before the workers start, and the returned function after them. */
export async function setup(): Promise<() => Promise<void>> {
  const server = await TestPostgres.start();
  process.env.ORCH_TEST_POSTGRES = server.url();
  const url = await server.createDatabase(TEMPLATE);
  const password = { file: '', env: {} };
  const store = await openDatabase({
    file: '/nowhere/orch.db',
    server: { url, password, readers: 1, processName: 'orch template' },
    logger: silentLogger,
    clock: Date,
    onFatal: () => undefined,
  });
  await store.close();
  const { status, stderr } = psql(url, [RESET_FUNCTION]);
  if (status !== 0) throw new Error(`the template of the tests cannot be made: ${stderr}`);
  return () => server.remove();
}
