/** Before tests on PostgreSQL: starts one server for all of them, with a database that theirs are copies of. */
import { spawn } from 'node:child_process';
import { openDatabase } from '../../daemon/database/database.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { TestPostgres } from './postgres.js';
import { psql, RESET_FUNCTION, TEMPLATE } from './test-databases.js';

/** Settings for many short tests on one server without standbys. */
const CHEAP = ['wal_level = minimal', 'max_wal_senders = 0', 'jit = off', 'max_parallel_workers_per_gather = 0'];

/** Vitest calls it once, before the workers start, and the returned function after them. */
export async function setup(): Promise<() => Promise<void>> {
  const server = await TestPostgres.start({ conf: CHEAP });
  endWithThisProcess(server);
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

/** Ends the server and removes its files when this process ends without having done so, for example by Ctrl-C. */
function endWithThisProcess({ directory }: TestPostgres): void {
  const script = `while kill -0 "$1" 2>/dev/null && [ -d "$2" ]; do sleep 2; done
    [ ! -f "$2/data/postmaster.pid" ] || kill -QUIT "$(head -n 1 "$2/data/postmaster.pid")"
    rm -rf "$2"`;
  spawn('sh', ['-c', script, 'sh', String(process.pid), directory], { detached: true, stdio: 'ignore' }).unref();
}
