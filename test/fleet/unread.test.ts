/** Agents that do not read what is sent to them: they hold little of the orchestrator's memory, and not for long. */
import { describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { LINK_LIMITS } from '../../src/wire/limits.js';
import type { OrchestratorMessage } from '../../src/wire/messages.js';
import { Fleet, until } from '../support/fleet.js';
import { until as untilTrue } from '../support/until.js';

const RUN = '01J8ZQ4Y7M0000000000000000';
/** Characters of the content of each part. */
const PART = 512 * 1024;
/** Parts that no kernel takes for a socket that nobody reads: Linux buffers up to 36 MiB of a connection. */
const BEYOND_BUFFERS = 120;

/** A part of a run that brings one file. */
const part = (number: number, size = PART): OrchestratorMessage => {
  const path = `/srv/file-${number}`;
  const body = { path, content: String(number).padEnd(size) };
  const file = { module: 'web', kind: 'file-unix', identity: path, id: null, name: null, body, after: [] } as const;
  return { type: 'run_part', run_id: RUN, part: number, resources: [{ ...file, after: [] }], removals: [] };
};

/** An approved agent that reads nothing, and what the orchestrator holds for it. */
async function deaf() {
  const fleet = await Fleet.start();
  const agent = await fleet.approved('web');
  const { length } = agent.received;
  agent.socket.pause();
  const connection = fleet.registry.get(agent.nodeId);
  if (connection === undefined) throw new Error('it is not connected');
  const socket: WebSocket = Reflect.get(connection, 'socket');
  return { fleet, agent, socket, connection, before: length };
}

describe('an agent that does not read', () => {
  it('holds a few megabytes of an apply of a hundred, and gets all of it in order once it reads', async () => {
    const { fleet, agent, socket, before } = await deaf();
    const parts = Array.from({ length: 200 }, (_, number) => part(number));
    expect(fleet.registry.send(agent.nodeId, parts)).toBe(true);
    expect(socket.bufferedAmount).toBeLessThan(LINK_LIMITS.ahead + 2 * PART);
    expect(fleet.registry.send(agent.nodeId, [{ type: 'run_cancel', run_id: RUN }])).toBe(true);
    agent.socket.resume();
    await until(() => agent.received.length === before + 201);
    const received = agent.received.slice(before);
    expect(received.map((one) => (one.type === 'run_part' ? one.part : one.type))).toEqual([
      ...parts.keys(),
      'run_cancel',
    ]);
  });

  it.each([
    ['many messages wait', BEYOND_BUFFERS, PART],
    ['one message is written in part', 1, BEYOND_BUFFERS * PART],
  ])('is cut off when nothing goes out for a minute, and not while it reads slowly: %s', async (_what, count, size) => {
    const { fleet, agent, connection } = await deaf();
    fleet.registry.send(
      agent.nodeId,
      Array.from({ length: count }, (_, number) => part(number, size)),
    );
    const written = () => Reflect.get(Reflect.get(connection, 'outbox'), 'progressAt');
    // The kernel takes a little more for a while. Signs of life, so that only its reading counts.
    await untilTrue(
      () => {
        fleet.clock.advance(1_000);
        Reflect.get(connection, 'liveness').recordMessage();
        connection.beat();
        return connection.state === 'closed';
      },
      'it is cut off',
      1,
    );
    expect(fleet.clock.monotonic() - written()).toBe(LINK_LIMITS.stalledAfter);
  });

  it('is cut off when it asks for ever', async () => {
    const { fleet, agent } = await deaf();
    const size = 8 * 1024 * 1024;
    const run_id = 'x'.repeat(size);
    for (let sent = 0; sent < 2 * LINK_LIMITS.unsent; sent += size) {
      if (!fleet.registry.send(agent.nodeId, [{ type: 'run_cancel', run_id }])) break;
    }
    await until(() => fleet.registry.get(agent.nodeId) === undefined);
  });
});
