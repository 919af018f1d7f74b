import { describe, expect, it } from 'vitest';
import { Rights } from '../../daemon/core/rights.js';
import { insertAgent } from '../../daemon/fleet/agent-store.js';
import { setTag } from '../../daemon/fleet/tag-store.js';
import { machinesOf, writerOf } from '../support/audit.js';
import { agentRow, node, openStore } from '../support/database.js';

const ID = node('1');
const DEV = new Rights('operator', [{ rights: ['read'], selector: 'env=dev' }]);

/** A store with a machine in an environment, which a request has read. */
async function kept(env: string) {
  const store = await openStore();
  const machines = machinesOf(store);
  await insertAgent(store.db, agentRow({ node_id: ID, name: 'a' }));
  await setTag(store.db, ID, 'env', env);
  await machines.shown.find(ID);
  return { store, machines };
}

describe('machines that are kept between requests', () => {
  it('are not read again for an operator who may read them, until the fleet changes', async () => {
    const { store, machines } = await kept('dev');
    // Behind the back of the unit of work, which shows what is read.
    await setTag(store.db, ID, 'env', 'prod');
    expect(await machines.readable(DEV, ID)).toEqual({ nodeId: ID, tags: { env: 'dev' } });
    await machines.shown.forgottenBy(writerOf(store).writer).write((tx) => setTag(tx, ID, 'role', 'web'));
    expect(await machines.readable(DEV, ID)).toBeNull();
  });

  it('are read like unknown ones for an operator who may not, so that the time tells nothing of them', async () => {
    const { store, machines } = await kept('prod');
    expect(await machines.readable(DEV, ID)).toBeNull();
    await setTag(store.db, ID, 'env', 'dev');
    expect(await machines.readable(DEV, ID)).toEqual({ nodeId: ID, tags: { env: 'dev' } });
  });
});
