/** What ten grants cost: requests a second of an operator whom they limit, beside one without. */
import { publicKeyOfKeyObject } from '../../../src/identity/key-object.js';
import { signNonce } from '../../../src/identity/login-binding.js';
import { generateKey } from '../../../src/identity/private-key.js';
import type { Load, LoadTarget } from '../http-load.js';
import { alternate, atLeastTimes, numbersOf, OURS, rowOf } from '../row.js';
import { sized } from '../sized.js';
import type { ApiBench } from './api.js';
import { idOfAgent } from './filled-orchestrator.js';

const ROUNDS = sized(5, 1);
/** Milliseconds of one round of one operator. */
const ROUND = sized(1_000, 100);
const AGENTS = sized(5_000, 100);
const UNLIMITED = 'without grants';
/** The last grant selects every agent; the others are looked at in vain. */
const GRANTS = Array.from({ length: 10 }, (_, index) => ({
  rights: ['read'],
  selector: index === 9 ? 'tag.role!=none' : `tag.role=none-${index}`,
}));

const WORK = [
  { name: 'GET /agents of 1,000, ten grants', path: '/agents?limit=1000' },
  { name: 'GET /agents/{id}, ten grants', path: `/agents/${idOfAgent(7)}` },
] as const;

export async function measureGrants({ measure, filled, load }: ApiBench): Promise<void> {
  for (const { name, path } of WORK) {
    const what = `api: ${name}`;
    await measure([what], async () => {
      const made = await filled();
      await made.growTo(AGENTS);
      const { orchestrator } = made;
      const targets: readonly (readonly [string, LoadTarget])[] = [
        [OURS, orchestrator.get(path, await limited(made))],
        [UNLIMITED, orchestrator.get(path, await made.session())],
      ];
      const loader = await load();
      const ask = (target: LoadTarget, ms: number) =>
        loader.ask<Load>({ do: 'load', target, connections: 2, ms, fresh: false });
      for (const [, target] of targets) await ask(target, ROUND / 2);
      const programs = new Map(targets.map(([who, target]) => [who, () => ask(target, ROUND)]));
      const runs = await alternate(ROUNDS, programs);
      const goal = atLeastTimes(0.87, UNLIMITED);
      return [rowOf({ what, unit: '/s', runs: numbersOf(runs, ({ perSecond }) => perSecond), goal })];
    });
  }
}

/** Adds an operator with ten grants, and returns the token of a session. */
async function limited({ orchestrator: { api } }: Awaited<ReturnType<ApiBench['filled']>>): Promise<string> {
  const key = generateKey();
  const public_key = publicKeyOfKeyObject(key);
  const username = `limited-${public_key.slice(0, 12)}`;
  await api.call('addOperator', { body: { public_key, username, role: 'operator', grants: GRANTS } });
  const { nonce } = await api.call('createChallenge', { body: { public_key } });
  const signature = signNonce(key, Buffer.from(nonce, 'hex'));
  return (await api.call('verifyChallenge', { body: { public_key, signature } })).token;
}
