/** Faults at random moments of a mixed load. After each of them every promise of the ledger has to hold. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { IS_EXHAUSTIVE } from '../support/exhaustive.js';
import { TEST_STORE } from '../support/store-urls.js';
import { FAULTS, type Fault } from './catalogue.js';
import { check } from './checks.js';
import { missing } from './disk.js';
import { Fleet } from './fleet.js';
import { Ledger } from './ledger.js';
import { Load } from './load.js';
import { ENFORCED } from './machines.js';
import { Random } from './random.js';
import { REGRESSIONS } from './regressions.js';
import { linesIn } from './witness.js';

const seed = Number(process.env.ORCH_FAULT_SEED ?? 1);
const rounds = Number(process.env.ORCH_FAULT_ROUNDS ?? 1);
/** One fault of each kind, for `npm test`: the others are the same at another end, or harm another file. */
const FEW: readonly string[] = [
  'kill -9 of both ends',
  'connections of the database that end',
  'a power cut at the orchestrator',
  'a full disk at an agent',
  'a clock that is years ahead at the orchestrator',
  'a damaged write-ahead log',
  'an old backup under a running fleet',
];
const names = IS_EXHAUSTIVE || process.env.ORCH_FAULT_ROUNDS !== undefined ? FAULTS.map(({ name }) => name) : FEW;
const reason = missing === null ? '' : ` (skipped: ${missing})`;

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
  afterAll(end);

  async function end(): Promise<void> {
    const ended = fleet;
    fleet = null;
    if (ended !== null) count(ledger, ended);
    ledger = new Ledger();
    await ended?.dispose();
  }

  function count({ applies, rollouts }: Ledger, fleet: Fleet): void {
    const fates = (all: readonly { readonly fate: string }[]) =>
      `${all.filter(({ fate }) => fate === 'acknowledged').length} of ${all.length}`;
    const automatic = linesIn(join(fleet.witness(ENFORCED), 'kept')).length;
    const own = `${automatic} values applied without anybody, ${fleet.receiver.count} notifications received`;
    process.stderr.write(`faults: acknowledged ${fates(applies)} applies and ${fates(rollouts)} rollouts; ${own}\n`);
  }

  async function running(): Promise<Fleet> {
    if (fleet === null) {
      fleet = new Fleet();
      await fleet.begin();
    }
    return fleet;
  }

  for (const { fault, seed: own } of REGRESSIONS) tryFault(fault, own);
  for (let own = seed; own < seed + rounds; own += 1) {
    for (const name of names) tryFault(name, own);
    it(`has delivered every notification, seed ${own}`, async () => {
      const { receiver, world } = await running();
      await receiver.drained(world);
      expect(await receiver.check(world)).toEqual([]);
      // The checks take longer with each operation of the fleet.
      await end();
    });
  }

  function tryFault(name: string, own: number): void {
    const fault = FAULTS.find((one) => one.name === name);
    if (fault === undefined) throw new Error(`there is no fault named ${name}`);
    if (!(fault.stores ?? ['sqlite']).includes(TEST_STORE)) return;
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
      await sleep(random.between(300, 1_500));
      await fault.strike({ fleet, ledger, random });
    } finally {
      await fleet.keepUp(load.stop());
    }
    await fleet.allBack();
    await check(fleet, ledger, fault.allowed);
    const broken = ledger.violations.splice(0);
    // The report shows them when all rounds are over, which takes hours.
    for (const sentence of broken) process.stderr.write(`faults: ${fault.name}, seed ${own}: ${sentence}\n`);
    expect(broken).toEqual([]);
  }
});
