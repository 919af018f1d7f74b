import { availableParallelism, loadavg } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Factor for every limit of waiting: on a busy machine a test needs longer, which is no failure. */
const patience = Math.min(10, Math.max(1, (loadavg()[0] ?? 0) / availableParallelism()));

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/long/**', 'test/bench/**', 'node_modules/**'],
    globalSetup: ['./test/support/built.ts', './test/support/postgres-setup.ts'],
    // Limits end what hangs; none of them decides about a test that works.
    testTimeout: 240_000 * patience,
    hookTimeout: 240_000 * patience,
    maxWorkers: 2,
    reporters: ['default', './scripts/skipped-reporter.mjs'],
    env: { ORCH_TEST_PATIENCE: String(patience) },
  },
});
