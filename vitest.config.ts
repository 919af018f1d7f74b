import { availableParallelism, loadavg } from 'node:os';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { LongFirst } from './test/support/long-first.js';
import { ONLY_LONG } from './test/support/long-suites.js';
import { FEWER_RANDOM_CASES, ON_POSTGRES, SUITES_ON_POSTGRES, testStores } from './test/support/postgres-suites.js';

/** `npm run test:faults` runs the earlier releases with the other faults. */
const isOfFaults = process.env.ORCH_FAULT_ROUNDS !== undefined;
const left = ONLY_LONG.filter((suites) => !(isOfFaults && suites.startsWith('test/faults/')));

/** Factor for every limit of waiting: on a busy machine a test needs longer, which is no failure. */
const patience = Math.min(10, Math.max(2, (loadavg()[0] ?? 0) / availableParallelism()));

const stores = testStores('sqlite');

const PROJECTS: Readonly<Record<'sqlite' | 'postgres', TestProjectInlineConfiguration>> = {
  sqlite: {
    extends: true,
    test: { name: 'on SQLite', include: ['test/**/*.test.ts'], env: { ORCH_TEST_STORE: 'sqlite' } },
  },
  postgres: {
    extends: true,
    test: {
      name: ON_POSTGRES,
      include: [...SUITES_ON_POSTGRES.include],
      exclude: [...SUITES_ON_POSTGRES.exclude],
      globalSetup: ['./test/support/postgres-setup.ts'],
      env: { ...FEWER_RANDOM_CASES, ORCH_TEST_STORE: 'postgres' },
    },
  },
};

export default defineConfig({
  test: {
    exclude: ['test/bench/**', ...left, '**/node_modules/**'],
    globalSetup: ['./test/support/built.ts'],
    setupFiles: ['./test/support/listed-suites.ts', './test/support/cpu-time.ts'],
    // Limits end what hangs; none of them decides about a test that works.
    testTimeout: 240_000 * patience,
    hookTimeout: 240_000 * patience,
    // Test files share the loaded modules of their worker, which halves the CPU time of short tests.
    isolate: false,
    // Two more than the two cores of CI, because tests spend time waiting for processes.
    maxWorkers: 4,
    sequence: { sequencer: LongFirst },
    reporters: ['default', './scripts/skipped-reporter.mjs'],
    env: { ORCH_TEST_PATIENCE: String(patience) },
    projects: stores.map((store) => PROJECTS[store]),
  },
});
