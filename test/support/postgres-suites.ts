/** Suites that also run on PostgreSQL, and the stores that a run of tests uses. */
import { noPostgres } from './postgres.js';

/** Name of the project of tests on PostgreSQL. */
export const ON_POSTGRES = 'on PostgreSQL';

const suites = (...names: readonly string[]): readonly string[] =>
  names.map((name) => (name.endsWith('.ts') ? `test/${name}` : `test/${name}/**/*.test.ts`));

/** Of `npm test`: those that read and write every table, and real processes on the way of each noun. */
const SHORT = suites(
  'api/operations.test.ts',
  'audit',
  'auth',
  'core',
  'database',
  'engine',
  'fleet',
  'maintenance',
  'metrics',
  'notify',
  'secrets',
  'e2e/first-loop.test.ts',
  'e2e/rollouts.test.ts',
  'e2e/secrets.test.ts',
);

/** Random histories of `npm run test:long` alone: each takes as long on PostgreSQL as all other tests of its directory. */
const RANDOM = suites('engine/model.test.ts', 'engine/rollout-model.test.ts');

/** Of `npm run test:long` alone: the store has a small part in them, or they repeat what the others do with it. */
const LONG = suites('api', 'discovery', 'e2e', 'http', 'packages', 'terminal/recordings', 'terminal/relay');

/** Suites in these directories that are about SQLite itself: its file, its locks, its migrations, or a shifted clock. */
export const SQLITE_SUITES = suites(
  'database/crash.test.ts',
  'database/database.test.ts',
  'database/migrations.test.ts',
  'database/stored-formats.test.ts',
  'database/upgrades.test.ts',
  'e2e/backup.test.ts',
  'e2e/clocks.test.ts',
  'e2e/doctor.test.ts',
  'e2e/full-disk.test.ts',
  'e2e/going-back.test.ts',
  'e2e/identity.test.ts',
  'e2e/lost-events.test.ts',
  'e2e/without-native.test.ts',
);

/** Suites that start their own PostgreSQL server. They run once, with the tests on SQLite. */
const OWN_SERVER = suites(
  'database/postgres-faults.test.ts',
  'database/postgres-migrations.test.ts',
  'e2e/postgres.test.ts',
  'e2e/postgres-server.test.ts',
  'e2e/postgres-store.test.ts',
  'e2e/statements.test.ts',
);

/** Suites in these directories that never use PostgreSQL as the store of the run. */
const NEVER = [...SQLITE_SUITES, ...OWN_SERVER];

/** Suites on PostgreSQL in a run on both stores. */
export const BESIDE_SQLITE = { include: SHORT, exclude: [...NEVER, ...RANDOM] };
/** Suites on PostgreSQL in a run on PostgreSQL alone, which chooses by paths. */
export const ALL_ON_POSTGRES = { include: [...SHORT, ...LONG], exclude: NEVER };
/** Suites on PostgreSQL that no run on both stores contains. */
export const LEFT_ON_POSTGRES = {
  include: [...LONG, ...RANDOM],
  exclude: [...NEVER, ...SHORT.filter((path) => !path.startsWith('test/engine/'))],
};

/** Returns the stores that tests run on, from `ORCH_TEST_STORE`, and says which tests do not run and why. */
export function testStores(standard: 'sqlite' | 'both'): readonly ('sqlite' | 'postgres')[] {
  const wanted = process.env.ORCH_TEST_STORE ?? standard;
  if (!['sqlite', 'postgres', 'both'].includes(wanted)) {
    throw new Error(`ORCH_TEST_STORE is ${wanted}: set it to sqlite, postgres or both`);
  }
  if (wanted === 'sqlite')
    return say('none runs on PostgreSQL: ORCH_TEST_STORE=both also runs those of the store there', ['sqlite']);
  if (noPostgres !== null) {
    if (wanted === 'postgres') throw new Error(`the tests on PostgreSQL cannot run: ${noPostgres}`);
    return say(`none runs on PostgreSQL: ${noPostgres}`, ['sqlite']);
  }
  const about = `those about SQLite itself, or with their own server, do not run on PostgreSQL: ${NEVER.join(', ')}`;
  return say(about, wanted === 'both' ? ['sqlite', 'postgres'] : ['postgres']);
}

/** Vitest reads its configuration once for each project. */
function say<T>(text: string, result: T): T {
  if (process.env.ORCH_TEST_STORES_SAID === text) return result;
  process.env.ORCH_TEST_STORES_SAID = text;
  process.stderr.write(`tests: ${text}\n`);
  return result;
}
