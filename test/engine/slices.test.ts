/** Long work leaves room for other work. */
import { describe, expect, it } from 'vitest';
import { Places } from '../../daemon/engine/lanes.js';
import { inSlices } from '../../daemon/engine/slices.js';
import { listAppliedResources, putAppliedResources } from '../../daemon/engine/state/applied-resource-store.js';
import { insertAgent } from '../../daemon/fleet/agent-store.js';
import { finish, mapped, type Steps } from '../../src/kernel/steps.js';
import { agentRow, node, openStore } from '../support/database.js';

/** Steps of a millisecond each, whatever the machine. */
function* slowSteps(count: number): Steps<number> {
  for (let step = 0; step < count; step += 1) {
    for (const began = performance.now(); performance.now() - began < 1; );
    yield;
  }
  return count;
}

/** Turns of the event loop while the work runs. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  isOver = true;
  return turns;
}

describe('work in slices', () => {
  it('lets the event loop turn between them, and gives what it would give at once', async () => {
    expect(await turnsDuring(async () => expect(await inSlices(slowSteps(50))).toBe(50))).toBeGreaterThanOrEqual(9);
    const letters = ['a', 'b', 'c'];
    expect(finish(mapped(letters, (letter, index) => `${letter}${index}`))).toEqual(['a0', 'b1', 'c2']);
    expect(await inSlices(mapped(letters, (letter) => letter.toUpperCase()))).toEqual(['A', 'B', 'C']);
  });

  it('shares the time of a turn with all that is computed at the same time', async () => {
    let steps = 0;
    let most = 0;
    const counted = function* (): Steps<number> {
      for (const step of slowSteps(6)) {
        steps += 1;
        yield step;
      }
      return 6;
    };
    const turn = () => {
      most = Math.max(most, steps);
      steps = 0;
      if (!isOver) setImmediate(turn);
    };
    let isOver = false;
    setImmediate(turn);
    const work = Array.from({ length: 20 }, () => inSlices(counted()));
    expect(await Promise.all(work)).toEqual(Array(20).fill(6));
    isOver = true;
    // Each step takes a millisecond, and a turn has two.
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(4);
  });

  it('throws what a step throws', async () => {
    const failing = function* (): Steps<never> {
      yield;
      throw new Error('no');
    };
    await expect(inSlices(failing())).rejects.toThrow('no');
  });
});

describe('the believed state of an agent', () => {
  it('is read in pages, between which others use the store, and comes in the order of application', async () => {
    const { db } = await openStore();
    const rows = Array.from({ length: 1_200 }, (_, index) => ({
      ...{ node_id: node('a'), family: 'file', identity_key: `/f/${index}`, module: 'm', kind: 'file-unix' },
      ...{ identity: `/f/${index}`, id: null, name: null, body_json: '{}', taint_json: null, origin: 'created' },
      ...{ operation_id: 'A', applied_at: 1, position: 1_199 - index, ad_hoc: 0, secrets_json: null },
    }));
    await insertAgent(db, agentRow({ node_id: node('a') }));
    await putAppliedResources(db, rows);
    const turns = await turnsDuring(async () => {
      const listed = await listAppliedResources(db, node('a'));
      expect(listed.map(({ identity }) => identity)).toEqual(rows.map(({ identity }) => identity).reverse());
    });
    expect(turns).toBeGreaterThanOrEqual(2);
    expect(await listAppliedResources(db, node('b'))).toEqual([]);
  });
});

describe('places for work', () => {
  it('are given in order, no more than there are, and again after a failure', async () => {
    const places = new Places(2);
    const order: string[] = [];
    let underWay = 0;
    let most = 0;
    const work = (name: string) =>
      places.enter(async () => {
        underWay += 1;
        most = Math.max(most, underWay);
        order.push(name);
        await new Promise((done) => setImmediate(done));
        underWay -= 1;
        if (name === 'b') throw new Error('b fails');
        return name;
      });
    const results = await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map(work));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', ...Array(3).fill('fulfilled')]);
    expect([most, order.join('')]).toEqual([2, 'abcde']);
    expect(await work('f')).toBe('f');
  });
});
