/** A hundred kills of an orchestrator at random moments of rollouts: each goes on, and nothing is applied twice or lost. */
import { afterAll, beforeAll, it } from 'vitest';
import { KilledFleet } from '../support/rollout-kills.js';

const KILLS = Number(process.env.ORCH_LONG_KILLS ?? 100);
const fleet = new KilledFleet();

beforeAll(() => fleet.begin());
afterAll(() => fleet.dispose());

it(`goes on after each of ${KILLS} kills`, async () => {
  await fleet.survive(KILLS);
});
