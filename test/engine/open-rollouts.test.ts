/** The number of rollouts in each state that has not ended, which the status shows. */

import { expect, it } from 'vitest';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { DEFAULT_PACE } from '../../daemon/engine/rollouts/rollout-pace.js';
import { countOpenRollouts } from '../../daemon/engine/rollouts/rollout-store.js';
import { ALICE, openBench } from '../support/engine.js';

it('counts rollouts until they end', async () => {
  const bench = await openBench();
  const agent = await bench.agent('1');
  agent.diligent = false;
  await bench.upload('site', { '/site': 'x' });
  const { rollouts } = bench.engine;
  const counts = async () => Object.fromEntries(await countOpenRollouts(bench.db));
  expect(await counts()).toEqual({});
  const target = { kind: 'selector', selector: '*' } as const;
  const request = {
    target,
    modules: ['site'],
    limits: NO_LIMITS,
    expect: null,
    pace: DEFAULT_PACE,
  };
  const first = await rollouts.apply(request, ALICE);
  const second = await rollouts.apply(request, ALICE);
  await rollouts.pause(first.id, null, ALICE);
  expect(await counts()).toMatchObject({ paused: 1 });
  agent.diligent = true;
  for (const run of [first, second]) await rollouts.resume(run.id, ALICE).catch(() => undefined);
  for (let round = 0; round < 100 && Object.keys(await counts()).length > 0; round += 1) {
    await bench.settle();
    // The rollout that came second waits for the agent, and looks again each second.
    bench.clock.advance(1_000);
    await bench.engine.tick();
  }
  expect(await counts()).toEqual({});
});
