/** A few kills of an orchestrator in rollouts; `test/long` has a hundred. */
import { afterAll, beforeAll, it } from 'vitest';
import { KilledFleet } from '../support/rollout-kills.js';

const fleet = new KilledFleet();

beforeAll(() => fleet.begin());
afterAll(() => fleet.dispose());

it('goes on after each of two kills of the orchestrator', async () => {
  await fleet.survive(2);
}, 300_000);
