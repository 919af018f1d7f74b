import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { MINUTES_ON_HOSTS } from './test/support/long-suites.js';
import { LONG_ON_POSTGRES, ON_POSTGRES, testStores } from './test/support/postgres-suites.js';

const PROJECTS: Readonly<Record<'sqlite' | 'postgres', TestProjectInlineConfiguration>> = {
  sqlite: {
    extends: true,
    test: {
      name: 'on SQLite',
      include: [
        'test/long/**/*.test.ts',
        ...MINUTES_ON_HOSTS,
        'test/api/fuzz.test.ts',
        'test/cli/terminal/prediction/predicted-echo.test.ts',
        'test/faults/releases.test.ts',
      ],
      env: { ORCH_TEST_STORE: 'sqlite' },
    },
  },
  postgres: {
    extends: true,
    test: {
      name: ON_POSTGRES,
      include: [...LONG_ON_POSTGRES.include],
      globalSetup: ['./test/support/built.ts', './test/support/postgres-setup.ts'],
      maxWorkers: 2,
      env: { ORCH_TEST_STORE: 'postgres' },
    },
  },
};

/** Suites that take minutes, and all random cases on PostgreSQL, of which `npm test` draws a few: `npm run test:long`. */
export default defineConfig({
  test: {
    setupFiles: ['./test/support/listed-suites.ts'],
    testTimeout: 30 * 60_000,
    hookTimeout: 600_000,
    reporters: ['default', './scripts/skipped-reporter.mjs'],
    env: {
      ORCH_FAULT_RELEASES: 'all',
      ORCH_FUZZ_RUNS: process.env.ORCH_FUZZ_RUNS ?? '2000',
      ORCH_PREDICTION_RUNS: process.env.ORCH_PREDICTION_RUNS ?? '1000',
    },
    projects: testStores('both').map((store) => PROJECTS[store]),
  },
});
