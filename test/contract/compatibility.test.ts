import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { API_BASE, CONTRACT } from '../../src/contract/contract.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';

const page = readFileSync(new URL('../../docs/compatibility.md', import.meta.url), 'utf8');

it('docs/compatibility.md names the versions of this release', () => {
  expect(page).toContain(`All paths begin with \`${API_BASE}\``);
  expect(page).toContain(`link between agents and orchestrator, version ${PROTOCOL_VERSION} `);
  expect(page).toContain(`\`${API_BASE}${CONTRACT.getModuleSchema.path}\``);
});

it('docs/compatibility.md names every deprecated operation', () => {
  const deprecated = Object.values<RouteSpec>(CONTRACT).filter((route) => route.deprecated !== undefined);
  expect(deprecated.filter(({ id }) => !page.includes(`\`${id}\``)).map(({ id }) => id)).toEqual([]);
  expect(page.includes('Nothing is deprecated in this release.')).toBe(deprecated.length === 0);
});
