/** Input that waited: whoever typed it decides whether it is still meant, on both hops, and the agent gets all of it or none. */
import { describe, expect, it } from 'vitest';
import { anewFrame, inputFrame } from '../../../src/terminal/frames.js';
import { FakeClient, Room } from '../../support/relay.js';
import type { AgentSession } from '../../support/relay-agent.js';
import { until } from '../../support/until.js';

interface Typing {
  readonly room: Room;
  readonly client: FakeClient;
  readonly session: AgentSession;
}

async function start({ isOld = false, agentIsOld = false } = {}): Promise<Typing> {
  const room = await Room.start({ rules: { record: 'off', agentGrace: 3_600_000 } });
  room.agent.places = !agentIsOld;
  const { id, url } = await room.openShell();
  const client = await FakeClient.open(url);
  await client.welcomed();
  if (!isOld) client.socket.send(anewFrame());
  const session = await room.agent.attached(id);
  type(client, 0, 'ab');
  await until(() => session.input.length === 2, 'the first keys are there');
  return { room, client, session };
}

const type = (client: FakeClient, offset: number, text: string): void =>
  client.socket.send(inputFrame(offset, Buffer.from(text)));

const placesOf = ({ frames }: FakeClient): number[] =>
  frames.flatMap((frame) => (frame.type === 'place' ? [frame.offset] : []));

/** The agent's socket is lost, something is typed, and after so long the agent is back. */
async function typeWithoutAgent({ room, client, session }: Typing, text: string, ms: number): Promise<void> {
  const told = client.notes.length;
  session.socket?.terminate();
  await until(() => client.notes.slice(told).some(({ kind }) => kind === 'agent_link'), 'the loss is known');
  type(client, session.input.length, text);
  client.say({ kind: 'ask_latency' });
  await client.noted('latency');
  room.clock.advance(ms);
  await until(() => session.socket === null, 'the socket is gone');
  room.agent.list();
  await until(() => session.limit > 0 && session.socket !== null, 'it is back');
}

describe('input that waited for the agent', () => {
  it('for a moment is sent as soon as the agent is back', async () => {
    const typing = await start();
    await typeWithoutAgent(typing, 'cd\r', 3_000);
    await until(() => typing.session.input.toString() === 'abcd\r', 'it is there');
    expect(placesOf(typing.client)).toEqual([0]);
  });

  it('for long is not sent: its client is notified where the input stands, and goes on from there', async () => {
    const typing = await start();
    const { client, session } = typing;
    await typeWithoutAgent(typing, 'rm -rf /\r', 12_000);
    await until(() => placesOf(client).length === 2, 'the client is asked');
    expect(placesOf(client)).toEqual([0, 2]);
    // On its way before the client knew.
    type(client, 11, 'more\r');
    client.socket.send(anewFrame());
    type(client, 2, 'ls\r');
    await until(() => session.input.toString() === 'abls\r', 'what is still meant is there, and nothing else');
  });

  it('for long is sent again by a client that still means it', async () => {
    const typing = await start();
    const { client, session } = typing;
    await typeWithoutAgent(typing, 'uptime\r', 12_000);
    await until(() => placesOf(client).length === 2, 'the client is asked');
    client.socket.send(anewFrame());
    type(client, 2, 'uptime\r');
    await until(() => session.input.toString() === 'abuptime\r', 'it is there');
  });

  it('is sent as it was to an agent of an older version, and for a client of an older version', async () => {
    for (const ages of [{ agentIsOld: true }, { isOld: true }]) {
      const typing = await start(ages);
      await typeWithoutAgent(typing, 'uptime\r', 12_000);
      await until(() => typing.session.input.toString() === 'abuptime\r', 'it is there');
    }
  });

  it('is asked for again when the agent itself was cut off from it', async () => {
    const { room, client, session } = await start();
    room.agent.readsInput = false;
    type(client, 2, 'one');
    await until(() => session.input.toString() === 'abone', 'it is there');
    room.clock.advance(12_000);
    room.agent.ask(session, 2);
    await until(() => placesOf(client).length === 2, 'the client is asked');
    expect(placesOf(client)).toEqual([0, 2]);
  });
});

describe('input of a client that was silent', () => {
  it('for longer than it ever is does not count until it is said again', async () => {
    const { room, client, session } = await start();
    room.clock.advance(12_000);
    type(client, 2, 'rm -rf /\r');
    await until(() => placesOf(client).length === 2, 'the client is asked');
    expect(placesOf(client)).toEqual([0, 2]);
    type(client, 11, 'more\r');
    client.socket.send(anewFrame());
    type(client, 2, 'ls\r');
    await until(() => session.input.toString() === 'abls\r', 'what is still meant is there, and nothing else');
  });

  it('counts at once when it is of an older version', async () => {
    const { room, client, session } = await start({ isOld: true });
    room.clock.advance(12_000);
    type(client, 2, 'ls\r');
    await until(() => session.input.toString() === 'abls\r', 'it is there');
  });
});

it('makes it known that the agent does not answer, after two to three seconds, and that it does again', async () => {
  const { room, client, session } = await start();
  await client.welcomed();
  room.agent.readsInput = false;
  const told = client.notes.length;
  const links = () =>
    client.notes.slice(told).flatMap(({ kind, connected }) => (kind === 'agent_link' ? [connected] : []));
  session.socket?.pause();
  type(client, 2, 'x');
  await until(() => links().length === 1, 'clients are notified');
  session.socket?.resume();
  await until(() => links().length === 2, 'they are notified again');
  expect(links()).toEqual([false, true]);
});
