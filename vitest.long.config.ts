import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { LONG_PARTS } from './test/support/long-suites.js';
import { LONG_ON_POSTGRES, ON_POSTGRES, testStores } from './test/support/postgres-suites.js';

const stores = testStores('both');

/** A part of the long tests, which ends within 40 minutes: npm run test:long -- --project NAME */
const part = (name: string, include: readonly string[]): TestProjectInlineConfiguration => ({
  extends: true,
  test: {
    name,
    include: [...include],
    globalSetup: ['./test/support/built.ts'],
    env: { ORCH_TEST_LONG: '1', ORCH_TEST_STORE: 'sqlite' },
  },
});

const onPostgres = (name: string, suites: typeof LONG_ON_POSTGRES.random): TestProjectInlineConfiguration => ({
  extends: true,
  test: {
    name,
    include: [...suites.include],
    exclude: [...suites.exclude],
    globalSetup: ['./test/support/built.ts', './test/support/postgres-setup.ts'],
    maxWorkers: 2,
    env: { ORCH_TEST_STORE: 'postgres' },
  },
});

const PARTS: Readonly<Record<'sqlite' | 'postgres', readonly TestProjectInlineConfiguration[]>> = {
  sqlite: LONG_PARTS.map(([name, include]) => part(name, include)),
  postgres: [onPostgres('random on PostgreSQL', LONG_ON_POSTGRES.random), onPostgres(ON_POSTGRES, LONG_ON_POSTGRES.above)],
};

/** Suites that take minutes, and on PostgreSQL the suites that `npm test` leaves out there, or of which it draws a few cases. */
export default defineConfig({
  test: {
    setupFiles: ['./test/support/listed-suites.ts'],
    testTimeout: 30 * 60_000,
    hookTimeout: 600_000,
    reporters: ['default', './scripts/skipped-reporter.mjs'],
    env: {
      ORCH_FUZZ_RUNS: process.env.ORCH_FUZZ_RUNS ?? '2000',
      ORCH_PREDICTION_RUNS: process.env.ORCH_PREDICTION_RUNS ?? '1000',
    },
    projects: stores.flatMap((store) => PARTS[store]),
  },
});
