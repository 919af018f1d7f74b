import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import { DirectMessages } from '../../../src/terminal/direct-messages.js';

interface Opened {
  readonly peer: WebSocket;
  readonly connection: Duplex;
}

/** Everything that an end has seen, in order: messages, the way that they took, and all else. */
interface Seen {
  readonly messages: Buffer[];
  readonly events: string[];
  direct: number;
}

let server: Server;
const openings: ((opened: Opened) => void)[] = [];

beforeAll(async () => {
  const upgrades = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: 128 * 1024 });
  server = createServer();
  server.on('upgrade', (request, connection, head) => {
    upgrades.handleUpgrade(request, connection, head, (peer) => openings.shift()?.({ peer, connection }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterAll(() => void server.close());

const port = () => (server.address() as AddressInfo).port;

function nextOpening(): Promise<Opened> {
  return new Promise((resolve) => openings.push(resolve));
}

function watch(
  { peer, connection }: Opened,
  end: 'client' | 'server',
  passOn: (data: Buffer) => void = () => {},
): { seen: Seen; direct: DirectMessages } {
  const seen: Seen = { messages: [], events: [], direct: 0 };
  const take = (data: RawData) => {
    seen.messages.push(Buffer.from(data as Buffer));
    seen.events.push('message');
    passOn(data as Buffer);
  };
  peer.on('message', take);
  peer.on('ping', () => seen.events.push('ping'));
  peer.on('error', () => seen.events.push('error'));
  peer.on('close', (code) => seen.events.push(`close ${code}`));
  const onMessage = (data: Buffer) => {
    seen.direct += 1;
    take(data);
  };
  return { seen, direct: new DirectMessages({ socket: peer, connection, end, onMessage }) };
}

/** A connection that has asked for the upgrade by hand, so that a test says how its bytes come; and the server's end of it. */
async function rawClient(
  passOn?: (data: Buffer) => void,
): Promise<{ raw: Socket } & ReturnType<typeof watch> & Opened> {
  // In the tick of the upgrade, as the orchestrator does it.
  const served = new Promise<ReturnType<typeof watch> & Opened>((resolve) =>
    openings.push((opened) => resolve({ ...watch(opened, 'server', passOn), ...opened })),
  );
  const raw = connect(port(), '127.0.0.1');
  raw.setNoDelay(true);
  raw.write(
    'GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
      `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`,
  );
  const ends = await served;
  raw.resume();
  return { raw, ...ends };
}

/** A server's end, and an ordinary client of `ws` at the other. */
async function pair(): Promise<ReturnType<typeof watch> & Opened & { client: WebSocket }> {
  const opening = nextOpening();
  const client = new WebSocket(`ws://127.0.0.1:${port()}`, { perMessageDeflate: false });
  const [opened] = await Promise.all([opening, once(client, 'open')]);
  return { ...opened, ...watch(opened, 'server'), client };
}

interface FrameOptions {
  readonly opcode?: number;
  readonly fin?: boolean;
  readonly masked?: boolean;
  readonly zeros?: boolean;
}

function frameOf(data: Buffer, { opcode = 2, fin = true, masked = true, zeros = false }: FrameOptions = {}): Buffer {
  const { length } = data;
  const isLong = length > 125;
  const head = Buffer.from([(fin ? 0x80 : 0) | opcode, (masked ? 0x80 : 0) | (isLong ? 126 : length)]);
  const size = Buffer.alloc(isLong ? 2 : 0);
  if (isLong) size.writeUInt16BE(length);
  const mask = zeros ? Buffer.alloc(4) : randomBytes(4);
  const hidden = Buffer.from(data.map((byte, index) => byte ^ (mask[index % 4] as number)));
  return Buffer.concat(masked ? [head, size, mask, hidden] : [head, size, data]);
}

async function until(isSo: () => boolean): Promise<void> {
  for (let round = 0; round < 500 && !isSo(); round += 1) await wait(10);
  expect(isSo()).toBe(true);
}

const kinds = ['plain', 'unmasked', 'pieces', 'ping', 'long'] as const;

/** The bytes of one of them, and what comes of it. */
function piece(kind: (typeof kinds)[number], at: number): { bytes: Buffer; messages: Buffer[]; events: string[] } {
  const data = Buffer.from(`${kind} ${at}`);
  const events = ['message'];
  if (kind === 'ping') return { bytes: frameOf(data, { opcode: 9 }), messages: [], events: ['ping'] };
  if (kind === 'pieces') {
    const parts = [frameOf(data.subarray(0, 3), { fin: false }), frameOf(data.subarray(3), { opcode: 0 })];
    return { bytes: Buffer.concat(parts), messages: [data], events };
  }
  const whole = kind === 'long' ? Buffer.alloc(200 + at * 1_000, data) : data;
  return { bytes: frameOf(whole, { zeros: kind === 'unmasked' }), messages: [whole], events };
}

describe('messages', () => {
  it('come whole and in order, wherever their bytes are cut and whatever is between them', async () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 12 }),
        cuts,
        async (list, sizes) => {
          const { raw, seen, connection } = await rawClient();
          const pieces = list.map(piece);
          const bytes = Buffer.concat(pieces.map((each) => each.bytes));
          // Given to the connection's readers directly: the network would join them again.
          for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
            const size = sizes[turn % sizes.length] as number;
            connection.emit('data', Buffer.from(bytes.subarray(at, at + size)));
            at += size;
          }
          expect(seen.events).toEqual(pieces.flatMap((each) => each.events));
          expect(seen.messages).toEqual(pieces.flatMap((each) => each.messages));
          raw.destroy();
        },
      ),
      { numRuns: 60 },
    );
  });

  it('that are whole do not go through ws', async () => {
    const { raw, seen } = await rawClient();
    raw.write(frameOf(Buffer.from('a key')));
    await until(() => seen.messages.length === 1);
    expect(seen.direct).toBe(1);
    raw.destroy();
  });

  it('are sent in as many parts as they have', async () => {
    const { peer, direct, client } = await pair();
    for (const sizes of [
      [1, 1],
      [9, 100, 30],
      [9, 16_000, 10_000, 300],
      [9, 100_000],
    ]) {
      const parts = sizes.map((size) => randomBytes(size)) as [Buffer, ...Buffer[]];
      const received = once(client, 'message') as Promise<[Buffer]>;
      direct.send(...parts);
      expect((await received)[0].equals(Buffer.concat(parts))).toBe(true);
    }
    peer.terminate();
  });

  it('are passed on to all as they came, also to one that does not read for a while', async () => {
    const receivers = [await pair(), await pair(), await pair()];
    const { raw, seen } = await rawClient((data) => {
      for (const [index, { direct }] of receivers.entries()) {
        if (index === 1) direct.send(data.subarray(0, 1), data.subarray(1));
        else direct.send(data);
      }
    });
    const heard = receivers.map(({ client }) => {
      const messages: Buffer[] = [];
      client.on('message', (data: Buffer) => messages.push(data));
      return messages;
    });
    receivers[2]?.client.pause();
    const sent = Array.from({ length: 1_200 }, (_, index) => randomBytes(1 + ((index * 7_919) % 40_000)));
    for (const [index, data] of sent.entries()) {
      raw.write(frameOf(data, { zeros: index % 3 > 0 }));
      if (index % 40 === 0) await wait(1);
    }
    await until(() => seen.messages.length === sent.length && heard[0]?.length === sent.length);
    expect(seen.direct).toBeGreaterThan(100);
    expect(receivers[2]?.connection.writableLength).toBeGreaterThan(0);
    receivers[2]?.client.resume();
    await until(() => heard.every((messages) => messages.length === sent.length));
    for (const messages of heard) expect(messages.every((data, at) => data.equals(sent[at] as Buffer))).toBe(true);
    for (const { peer } of receivers) peer.terminate();
    raw.destroy();
  });

  it.each([0, 1, 125, 126, 65_535, 65_536, 100_000])('of %i bytes go there and back', async (length) => {
    const opening = nextOpening();
    const client = new WebSocket(`ws://127.0.0.1:${port()}`, { perMessageDeflate: false });
    let connection: Duplex | null = null;
    client.on('upgrade', (response) => {
      connection = response.socket;
    });
    const ours = once(client, 'open').then(() =>
      watch({ peer: client, connection: connection as unknown as Duplex }, 'client'),
    );
    const opened = await opening;
    const theirs = watch(opened, 'server');
    const { direct, seen } = await ours;
    const data = randomBytes(length);
    direct.send(data);
    await until(() => theirs.seen.messages.length === 1);
    theirs.direct.send(theirs.seen.messages[0] as Buffer);
    await until(() => seen.messages.length === 1);
    expect(seen.messages[0]?.equals(data)).toBe(true);
    client.terminate();
    await once(opened.peer, 'close');
  });
});

describe('the end', () => {
  it('comes behind all messages before it, and nothing behind it', async () => {
    const { raw, seen } = await rawClient();
    const code = Buffer.from([0x0f, 0xa0]);
    const close = frameOf(code, { opcode: 8 });
    raw.write(Buffer.concat([frameOf(Buffer.from('last')), close, frameOf(Buffer.from('late'))]));
    await until(() => seen.events.length === 2);
    expect(seen.events).toEqual(['message', 'close 4000']);
  });

  it('of a connection that breaks without a reader leaves out nothing and doubles nothing', async () => {
    const { raw, seen, peer, connection } = await rawClient();
    peer.pause();
    const sent = Array.from({ length: 50 }, (_, index) => Buffer.from(`message ${index}`));
    raw.write(Buffer.concat(sent.map((data) => frameOf(data))));
    await until(() => connection.readableLength > 0);
    connection.destroy();
    await until(() => seen.events.at(-1)?.startsWith('close') === true);
    expect(seen.messages).toEqual(sent);
  });

  it('comes at once for what the protocol does not allow', async () => {
    const { raw, seen } = await rawClient();
    raw.write(frameOf(Buffer.from('bare'), { masked: false }));
    raw.write(frameOf(Buffer.from('after it')));
    await until(() => seen.events.includes('error'));
    raw.destroy();
    await until(() => seen.events.at(-1)?.startsWith('close') === true);
    expect(seen.messages).toEqual([]);
  });

  it('comes at once for a ping that is too long, and nothing behind it is read', async () => {
    const { raw, seen, connection } = await rawClient();
    const ping = frameOf(Buffer.alloc(126), { opcode: 9 });
    connection.emit('data', Buffer.concat([ping, frameOf(Buffer.from('after it'))]));
    await until(() => seen.events.includes('error'));
    raw.destroy();
    await until(() => seen.events.at(-1)?.startsWith('close') === true);
    expect(seen.messages).toEqual([]);
  });

  it('is that of ws: nothing is sent after it', async () => {
    const { raw, peer, direct } = await rawClient();
    const heard: Buffer[] = [];
    raw.on('data', (data) => heard.push(data));
    peer.close(4000);
    direct.send(Buffer.from('late'));
    await until(() => heard.length > 0);
    expect(Buffer.concat(heard).includes('late')).toBe(false);
    raw.destroy();
  });
});
