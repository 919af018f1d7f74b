import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect as connectTcp, createServer, type Server, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AgentListener } from '../../../daemon/fleet/agent-listener.js';
import type { AgentPeer } from '../../../daemon/fleet/agent-peer.js';
import { type DialOptions, dialContext, dialOrchestrator } from '../../../src/agent/link/dial.js';
import { requirePinned } from '../../../src/identity/pin.js';
import { generateKey } from '../../../src/identity/private-key.js';
import { Fault, isFault } from '../../../src/kernel/fault.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { credentialsOf, newIdentity, serve } from '../../support/identity.js';

const agent = newIdentity();
const orchestrator = newIdentity();
const ALPNProtocols = ['orch-agent/1'];
const ours = { ...credentialsOf(orchestrator.privateKey), ALPNProtocols };

const optionsFor = (port: number, more: Partial<DialOptions> = {}): DialOptions => ({
  host: '127.0.0.1',
  port,
  context: dialContext(agent.privateKey),
  verifyPeer: (key) => requirePinned(orchestrator.publicKey, key, 'the orchestrator'),
  timeoutMs: 5_000,
  ...more,
});

/** The report of a failed attempt, for a person and for a program. */
async function failure(
  options: DialOptions,
): Promise<{ code: string; message: string; reason: unknown; hint: unknown }> {
  const error: unknown = await dialOrchestrator(options).then(
    () => 'it connected',
    (caught) => caught,
  );
  if (!isFault(error)) throw error;
  return { code: error.code, message: error.message, reason: error.data?.reason, hint: error.hint };
}

async function listenTcp(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function startListener(onConnection: (peer: AgentPeer) => void): Promise<AgentListener> {
  const listener = new AgentListener({
    host: '127.0.0.1',
    port: 0,
    privateKey: orchestrator.privateKey,
    onConnection,
    logger: silentLogger,
  });
  await listener.start();
  onTestFinished(() => listener.stop());
  return listener;
}

describe('dialOrchestrator', () => {
  it('opens a WebSocket to the right orchestrator, and both know who the other is', async () => {
    const peers: AgentPeer[] = [];
    const listener = await startListener((peer) => {
      peers.push(peer);
      peer.socket.on('message', (data) => peer.socket.send(`you said ${data.toString()}`));
    });
    const { socket, orchestratorKey } = await dialOrchestrator(optionsFor(listener.address().port));
    expect(orchestratorKey).toBe(orchestrator.publicKey);
    expect(peers[0]?.publicKey).toBe(agent.publicKey);
    const answer = new Promise<string>((resolve) => socket.on('message', (data) => resolve(data.toString())));
    socket.resume();
    socket.send('hello');
    expect(await answer).toBe('you said hello');
    socket.close();
  });

  it('loses nothing of what the orchestrator says at once', async () => {
    const listener = await startListener(({ socket }) => {
      for (const word of ['one', 'two', 'three']) socket.send(word);
      socket.close(4403, 'rejected');
    });
    const { socket } = await dialOrchestrator(optionsFor(listener.address().port));
    // Time for the words to arrive before anybody listens; too little of it makes the test weaker, not red.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const heard: string[] = [];
    socket.on('message', (data) => heard.push(data.toString()));
    const closed = new Promise<number>((resolve) => socket.on('close', resolve));
    socket.resume();
    expect(await closed).toBe(4403);
    expect(heard).toEqual(['one', 'two', 'three']);
  });

  it('waits for a check that takes its time', async () => {
    const listener = await startListener(() => undefined);
    const seen: string[] = [];
    const verifyPeer: DialOptions['verifyPeer'] = async (key) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      seen.push(key);
    };
    const { socket } = await dialOrchestrator(optionsFor(listener.address().port, { verifyPeer }));
    expect(seen).toEqual([orchestrator.publicKey]);
    socket.terminate();
  });

  it('takes frames of up to 4 MiB and no larger ones', async () => {
    const listener = await startListener(({ socket }) => {
      socket.send('x'.repeat(4 * 1024 * 1024));
      socket.send('x'.repeat(4 * 1024 * 1024 + 1));
    });
    const { socket } = await dialOrchestrator(optionsFor(listener.address().port));
    const sizes: number[] = [];
    socket.on('message', (data) => sizes.push(data.toString().length));
    const closed = new Promise<number>((resolve) => socket.on('close', resolve));
    socket.resume();
    await closed;
    expect(sizes).toEqual([4 * 1024 * 1024]);
  });

  it('sends a man in the middle nothing at all', async () => {
    const evil = newIdentity();
    let received = 0;
    const { port, server } = await serve({ ...credentialsOf(evil.privateKey), ALPNProtocols }, (socket) => {
      socket.on('data', (chunk) => {
        received += chunk.length;
      });
    });
    const closed = new Promise((resolve) => server.on('connection', (socket) => socket.on('close', resolve)));
    const { code, message } = await failure(optionsFor(port));
    expect(code).toBe('pin_mismatch');
    expect(message).toBe(`the orchestrator shows the key ${evil.publicKey}, but ${orchestrator.publicKey} is pinned`);
    await closed;
    expect(received).toBe(0);
  });

  it('sends nothing while the check is still going on', async () => {
    let received = 0;
    let decide: () => void = () => undefined;
    const { port } = await serve(ours, (socket) => {
      socket.on('data', (chunk) => {
        received += chunk.length;
      });
    });
    const verifyPeer = () =>
      new Promise<void>((_, reject) => {
        decide = () => reject(new Fault('pin_missing', 'no'));
        setTimeout(decide, 200);
      });
    expect((await failure(optionsFor(port, { verifyPeer }))).code).toBe('pin_missing');
    expect(received).toBe(0);
  });

  it('says when nothing listens', async () => {
    const server = createServer();
    const port = await listenTcp(server);
    await new Promise((resolve) => server.close(resolve));
    expect(await failure(optionsFor(port))).toMatchObject({
      code: 'unreachable',
      reason: 'refused',
      message: `cannot reach 127.0.0.1:${port}: nothing listens there`,
      hint: expect.stringContaining('4747'),
    });
    expect((await failure(optionsFor(port, { host: '::1' }))).message).toContain(`cannot reach [::1]:${port}: `);
    expect(await failure(optionsFor(port, { host: 'localhost' }))).toMatchObject({
      reason: 'refused',
      message: `cannot reach localhost:${port}: nothing listens there`,
    });
  });

  it('says when the host name is not known', async () => {
    expect(await failure(optionsFor(4747, { host: 'nowhere.invalid' }))).toMatchObject({
      code: 'unreachable',
      reason: 'unknown_host',
      message: 'cannot reach nowhere.invalid:4747: the host name is not known',
    });
  });

  it('gives up on a server that takes the connection and says nothing', async () => {
    const gone: Promise<void>[] = [];
    const port = await listenTcp(
      createServer((socket) => {
        socket.resume();
        gone.push(new Promise((resolve) => socket.on('close', () => resolve())));
      }),
    );
    expect(await failure(optionsFor(port, { timeoutMs: 200 }))).toMatchObject({
      code: 'unreachable',
      reason: 'timeout',
      message: `cannot reach 127.0.0.1:${port}: it does not answer`,
    });
    await gone[0];
  });

  it('gives up on an orchestrator that falls silent after the handshake', async () => {
    const { port } = await serve(ours, (socket) => socket.resume());
    expect(await failure(optionsFor(port, { timeoutMs: 200 }))).toMatchObject({
      code: 'unreachable',
      reason: 'timeout',
    });
  });

  it.each<[string, (socket: TLSSocket) => void]>([
    ['ends', (socket) => socket.end()],
    ['is cut', (socket) => socket.destroy()],
  ])('says so when the connection %s after the handshake', async (_, act) => {
    const { port } = await serve(ours, act);
    expect(await failure(optionsFor(port))).toMatchObject({
      code: 'unreachable',
      reason: 'closed',
      message: `cannot reach 127.0.0.1:${port}: it closed the connection`,
    });
  });

  it('says so when the connection is reset, early or late', async () => {
    const early = await listenTcp(createServer((socket) => socket.resetAndDestroy()));
    expect(await failure(optionsFor(early))).toMatchObject({ code: 'unreachable', reason: 'closed' });
    const { port } = await serve(ours, () => undefined);
    const proxies: Socket[] = [];
    const proxy = await listenTcp(
      createServer((socket) => {
        proxies.push(socket);
        const onward = connectTcp(port, '127.0.0.1');
        onward.on('error', () => undefined);
        socket.pipe(onward).pipe(socket);
      }),
    );
    const verifyPeer = async () => {
      proxies[0]?.resetAndDestroy();
      await new Promise((resolve) => setTimeout(resolve, 50));
    };
    expect(await failure(optionsFor(proxy, { verifyPeer }))).toMatchObject({ code: 'unreachable', reason: 'closed' });
  });

  it.each<[string, Parameters<typeof serve>[0]]>([
    ['does not speak the protocol', { ...ours, ALPNProtocols: ['http/1.1'] }],
    ['has no protocols at all', credentialsOf(orchestrator.privateKey)],
    ['has a key of another type', { ...credentialsOf(generateKey('p256')), ALPNProtocols }],
    ['speaks TLS 1.2 only', { ...ours, minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' }],
  ])('turns away from a server that %s', async (_, options) => {
    let received = 0;
    const { port } = await serve(options, (socket) => {
      socket.on('data', (chunk) => {
        received += chunk.length;
      });
    });
    expect(await failure(optionsFor(port))).toMatchObject({
      code: 'unreachable',
      reason: 'not_an_orchestrator',
      message: `cannot reach 127.0.0.1:${port}: it is not an orchestrator's agent port`,
      hint: expect.stringContaining('agent_port'),
    });
    expect(received).toBe(0);
  });

  it('turns away from a plain web server, and from one that has no such path', async () => {
    const plain = createHttpServer((_, response) => response.end('hello'));
    const port = await listenTcp(plain);
    expect(await failure(optionsFor(port))).toMatchObject({ code: 'unreachable', reason: 'not_an_orchestrator' });
    const { port: other } = await serve(ours, (socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n'));
    });
    expect((await failure(optionsFor(other))).message).toBe(
      `cannot reach 127.0.0.1:${other}: it is not an orchestrator's agent port (it answered with HTTP status 404)`,
    );
  });

  it('can be given up at every stage', async () => {
    const silent = await listenTcp(createServer((socket) => socket.resume()));
    const { port: mute } = await serve(ours, (socket) => socket.resume());
    expect((await failure(optionsFor(silent, { signal: AbortSignal.abort() }))).code).toBe('cancelled');
    for (const port of [silent, mute]) {
      expect(await failure(optionsFor(port, { signal: AbortSignal.timeout(100) }))).toMatchObject({
        code: 'cancelled',
        message: `the connection to 127.0.0.1:${port} was given up`,
      });
    }
  });
});
