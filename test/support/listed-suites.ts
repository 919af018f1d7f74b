/** Set-up of each test file: refuses stores in a suite that no list of `postgres-suites.ts` names, so that none is left out by mistake. */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { isListed } from './postgres-suites.js';
import { checkBeforeUse } from './store-urls.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

checkBeforeUse(() => {
  const { testPath } = expect.getState();
  if (testPath === undefined) return;
  const suite = relative(root, testPath);
  if (!isListed(suite))
    throw new Error(`${suite} uses a store: add it to BELOW or ABOVE in test/support/postgres-suites.ts`);
});
