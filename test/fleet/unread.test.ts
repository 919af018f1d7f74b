import { it } from 'vitest';
import { LINK_LIMITS } from '../../src/wire/limits.js';
import { Fleet, until } from '../support/fleet.js';

it('cuts an agent that asks and does not read the answers', async () => {
  const fleet = await Fleet.start();
  const agent = await fleet.approved('web');
  agent.socket.pause();
  const size = 8 * 1024 * 1024;
  const run_id = 'x'.repeat(size);
  for (let sent = 0; sent < 2 * LINK_LIMITS.unsent; sent += size) {
    if (!fleet.registry.send(agent.nodeId, [{ type: 'run_cancel', run_id }])) break;
  }
  await until(() => fleet.registry.get(agent.nodeId) === undefined);
});
