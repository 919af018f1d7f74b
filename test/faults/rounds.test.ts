/** Faults at random moments of a mixed load. After each of them every promise of the ledger has to hold. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { TEST_STORE } from '../support/store-urls.js';
import { FAULTS, type Fault } from './catalogue.js';
import { check } from './checks.js';
import { missing } from './disk.js';
import { Fleet } from './fleet.js';
import { Ledger, Load } from './load.js';
import { Random } from './random.js';
import { REGRESSIONS } from './regressions.js';

const seed = Number(process.env.ORCH_FAULT_SEED ?? 1);
const rounds = Number(process.env.ORCH_FAULT_ROUNDS ?? 1);
const reason = missing === null ? '' : ` (skipped: ${missing})`;

const storesOf = (name: string): readonly string[] => FAULTS.find((fault) => fault.name === name)?.stores ?? ['sqlite'];

describe.skipIf(missing !== null)(`a fleet under load, seed ${seed}${reason}`, () => {
  let fleet: Fleet | null = null;
  let ledger = new Ledger();

  beforeAll(() => {
    process.stderr.write(`faults: seed ${seed}, ${rounds} round${rounds === 1 ? '' : 's'}\n`);
  });
  afterEach(async ({ task }) => {
    // A fleet that broke a promise would break it again in each later round.
    if (task.result?.state === 'fail') await end();
  });
  afterAll(async () => {
    const { applies, rollouts } = ledger;
    const fates = (all: readonly { readonly fate: string }[]) =>
      `${all.filter(({ fate }) => fate === 'acknowledged').length} of ${all.length}`;
    process.stderr.write(`faults: acknowledged ${fates(applies)} applies and ${fates(rollouts)} rollouts\n`);
    await end();
  });

  async function end(): Promise<void> {
    await fleet?.dispose();
    fleet = null;
    ledger = new Ledger();
  }

  async function running(): Promise<Fleet> {
    if (fleet === null) {
      fleet = new Fleet();
      await fleet.begin();
    }
    return fleet;
  }

  const cases = [
    ...REGRESSIONS,
    ...Array.from({ length: rounds }, (_, round) =>
      FAULTS.map(({ name }) => ({ fault: name, seed: seed + round })),
    ).flat(),
  ].filter(({ fault }) => storesOf(fault).includes(TEST_STORE));
  for (const { fault: name, seed: own } of cases) {
    const fault = FAULTS.find((one) => one.name === name);
    if (fault === undefined) throw new Error(`there is no fault named ${name}`);
    const title = `keeps its promises through ${name}, seed ${own}`;
    if (fault.missing) it.skip(`${title} (skipped: ${fault.missing})`);
    else it(title, () => endure(fault, own));
  }

  async function endure(fault: Fault, own: number): Promise<void> {
    const fleet = await running();
    const random = new Random(own);
    await fault.prepare?.(fleet);
    const load = new Load(fleet, ledger);
    load.begin();
    try {
      await sleep(random.between(500, 2_500));
      await fault.strike({ fleet, ledger, random });
    } finally {
      await fleet.keepUp(load.stop());
    }
    await fleet.allBack();
    await check(fleet, ledger, fault.allowed);
    expect(ledger.violations.splice(0), `${fault.name}, seed ${own}`).toEqual([]);
  }
});
