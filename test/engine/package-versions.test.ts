/** Plans and applies read the versions of packages that their modules name first; evaluations only what was never read. */
import { expect, it } from 'vitest';
import type { PackageVersions } from '../../daemon/engine/applies/desired-set.js';
import { findFacts, NO_FACTS, putFacts } from '../../daemon/fleet/fact-store.js';
import { Fault } from '../../src/kernel/fault.js';
import { ALICE, type Bench, openBench } from '../support/engine.js';

const MODULE = `name: site
supports: [{platform: linux}]
resources:
  - file-unix: {path: /keep, content: ""}
  - {if: attributes.packages.nginx != nil, file-unix: {path: "/nginx-\${{ attributes.packages.nginx }}", content: ""}}
`;

/** A bench whose agent has this version of nginx when it is asked. */
async function withNginx() {
  const asked: string[] = [];
  let version = '1.22';
  let fault: Fault | null = null;
  let bench: Bench | null = null;
  const packages: PackageVersions = {
    ask: async (nodeId, names) => {
      asked.push(`now ${names.join()}`);
      if (fault !== null) throw fault;
      if (bench === null) return;
      const before = (await findFacts(bench.db, nodeId))?.facts ?? NO_FACTS;
      const facts = { ...before, parts: { ...before.parts, packages: { nginx: version } } };
      await putFacts(bench.db, nodeId, { facts, reported_at: bench.clock.now() });
    },
    askMissing: (_, names) => void asked.push(`missing ${names.join()}`),
  };
  bench = await openBench({ packages });
  const agent = await bench.agent('a');
  await bench.engine.modules.upload({ name: 'site', content: MODULE }, ALICE);
  return {
    bench,
    agent,
    asked,
    install: (next: string) => {
      version = next;
    },
    fail: (next: Fault) => {
      fault = next;
    },
  };
}

it('reads them before each apply, and keeps what a later version takes away from a person who asks', async () => {
  const { bench, agent, asked, install } = await withNginx();
  const { status, resources } = await bench.apply(agent, ['site']);
  expect(status).toBe('succeeded');
  expect(resources.map(({ identity }) => identity)).toEqual(['/keep', '/nginx-1.22']);
  install('1.24');
  const again = await bench.apply(agent, ['site']);
  expect(again.resources.map(({ identity, action }) => `${action} ${identity}`)).toContain('remove /nginx-1.22');
  expect(asked.filter((one) => one.startsWith('now'))).toEqual(['now nginx', 'now nginx']);
});

it('has an evaluation ask for those that were never read', async () => {
  const { bench, asked } = await withNginx();
  await bench.engine.assignments.create({ name: 'all', modules: ['site'], selector: '*', description: null }, ALICE);
  await bench.rest();
  expect(new Set(asked)).toEqual(new Set(['missing nginx']));
});

it('refuses an apply without them, and one of an agent that cannot report them', async () => {
  const { bench, agent, fail } = await withNginx();
  fail(new Fault('agent_timeout', 'the agent is silent'));
  await expect(bench.apply(agent, ['site'])).rejects.toMatchObject({ code: 'agent_timeout' });
  const old = await bench.agent('b', { connected: false });
  old.features = ['verify', 'confirm', 'files', 'purge'];
  await bench.arrive(old);
  await expect(bench.apply(old, ['site'])).rejects.toMatchObject({
    code: 'agent_too_old',
    message: expect.stringMatching(/ is too old to report the versions of packages$/),
  });
});
