/** Suites that also run on PostgreSQL. */
import { noPostgres } from './postgres.js';

/** Those of `npm test`: they read and write every table, in this process. */
export const POSTGRES_SUITES = [
  'api',
  'audit',
  'auth',
  'core',
  'database',
  'discovery',
  'e2e',
  'engine',
  'fleet',
  'http',
  'maintenance',
  'metrics',
  'notify',
  'packages',
  'secrets',
  'terminal',
].map((directory) => `test/${directory}/**/*.test.ts`);

/** Suites in these directories that are about SQLite itself: its file, its locks, its migrations from earlier releases. */
export const SQLITE_SUITES = [
  'test/database/crash.test.ts',
  'test/database/database.test.ts',
  'test/database/migrations.test.ts',
  'test/database/stored-formats.test.ts',
  'test/database/upgrades.test.ts',
  'test/e2e/backup.test.ts',
  'test/e2e/doctor.test.ts',
  'test/e2e/full-disk.test.ts',
  'test/e2e/going-back.test.ts',
  'test/e2e/identity.test.ts',
  'test/e2e/lost-events.test.ts',
  'test/e2e/without-native.test.ts',
];

/** Returns the stores that tests run on, from `ORCH_TEST_STORE`, and says which tests do not run and why. */
export function testStores(wanted = process.env.ORCH_TEST_STORE ?? 'sqlite'): readonly ('sqlite' | 'postgres')[] {
  if (!['sqlite', 'postgres', 'both'].includes(wanted)) {
    throw new Error(`ORCH_TEST_STORE is ${wanted}: set it to sqlite, postgres or both`);
  }
  if (wanted === 'sqlite') return ['sqlite'];
  if (noPostgres === null) {
    process.stderr.write(`tests: not on PostgreSQL, because they are about SQLite: ${SQLITE_SUITES.join(', ')}\n`);
    return wanted === 'both' ? ['sqlite', 'postgres'] : ['postgres'];
  }
  if (wanted === 'postgres') throw new Error(`the tests on PostgreSQL cannot run: ${noPostgres}`);
  process.stderr.write(`tests: none run on PostgreSQL: ${noPostgres}\n`);
  return ['sqlite'];
}
