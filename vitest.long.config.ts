import { defineConfig } from 'vitest/config';

/** Suites that take minutes: `npm run test:long`. */
export default defineConfig({
  test: { include: ['test/long/**/*.test.ts'], testTimeout: 30 * 60_000, hookTimeout: 120_000 },
});
