import { defineConfig } from 'vitest/config';

/** Suites that take minutes: `npm run test:long`. */
export default defineConfig({
  test: {
    include: [
      'test/long/**/*.test.ts',
      'test/api/fuzz.test.ts',
      'test/cli/terminal/prediction/predicted-echo.test.ts',
      'test/faults/releases.test.ts',
    ],
    testTimeout: 30 * 60_000,
    hookTimeout: 600_000,
    reporters: ['default', './scripts/skipped-reporter.mjs'],
    env: {
      ORCH_FAULT_RELEASES: 'all',
      ORCH_FUZZ_RUNS: process.env.ORCH_FUZZ_RUNS ?? '2000',
      ORCH_PREDICTION_RUNS: process.env.ORCH_PREDICTION_RUNS ?? '1000',
    },
  },
});
