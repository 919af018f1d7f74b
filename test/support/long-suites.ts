/** Suites on booted machines that take minutes each. `npm run test:long` runs them; `npm test` does not. */
export const MINUTES_ON_HOSTS: readonly string[] = ['test/hosts/*guide*.test.ts', 'test/hosts/upgrade.test.ts'];
