import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { connect as connectTcp, createServer } from 'node:net';
import { join } from 'node:path';
import { type ConnectionOptions, connect } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { WebSocket } from 'ws';
import { AgentListener, type AgentListenerOptions } from '../../daemon/fleet/agent-listener.js';
import type { AgentPeer } from '../../daemon/fleet/agent-peer.js';
import { dialContext, dialOrchestrator } from '../../src/agent/link/dial.js';
import { nodeIdOf } from '../../src/identity/key-object.js';
import { generateKey } from '../../src/identity/private-key.js';
import { isFault } from '../../src/kernel/fault.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { credentialsOf, handshake, has, type Identity, newIdentity, temporaryDirectory } from '../support/identity.js';

const orchestrator = newIdentity();
const agent = newIdentity();
const ours = { ...credentialsOf(agent.privateKey), ALPNProtocols: ['orch-agent/1'] };

interface Started {
  readonly listener: AgentListener;
  readonly port: number;
  readonly peers: readonly AgentPeer[];
}

async function start(more: Partial<AgentListenerOptions> = {}): Promise<Started> {
  const peers: AgentPeer[] = [];
  const listener = new AgentListener({
    host: '127.0.0.1',
    port: 0,
    privateKey: orchestrator.privateKey,
    onConnection: (peer) => peers.push(peer),
    logger: silentLogger,
    ...more,
  });
  onTestFinished(() => listener.stop());
  await listener.start();
  return { listener, port: listener.address().port, peers };
}

async function dial(port: number, { privateKey }: Identity = agent): Promise<WebSocket> {
  const { socket } = await dialOrchestrator({
    host: '127.0.0.1',
    port,
    context: dialContext(privateKey),
    verifyPeer: () => undefined,
    timeoutMs: 10_000,
  });
  socket.on('error', () => undefined);
  socket.resume();
  onTestFinished(() => socket.terminate());
  return socket;
}

const closeOf = (socket: WebSocket): Promise<{ code: number; reason: string }> =>
  new Promise((resolve) => socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() })));

/** Sends text through TLS and gathers everything until the connection ends, or how it failed. */
const talk = (port: number, options: ConnectionOptions, text: string): Promise<string> =>
  new Promise((resolve) => {
    let answer = '';
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options }, () => {
      socket.write(text);
    });
    socket.on('data', (chunk) => {
      answer += chunk.toString();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(answer));
  });

interface Run {
  readonly status: number | null;
  readonly output: string;
}

/** Runs a program without blocking the listener, which is in this process. */
const runBeside = (program: string, args: readonly string[], input = ''): Promise<Run> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { timeout: 15_000 });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, output }));
    child.stdin.on('error', () => undefined);
    child.stdin.write(input);
  });

function credentialFiles(): { readonly cert: string; readonly key: string } {
  const directory = temporaryDirectory();
  const paths = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') };
  writeFileSync(paths.cert, ours.cert);
  writeFileSync(paths.key, ours.key, { mode: 0o600 });
  return paths;
}

describe('an agent', () => {
  it('is who its key says', async () => {
    const { port, peers } = await start();
    const others = [newIdentity(), newIdentity(), newIdentity()];
    await Promise.all([agent, ...others].map((identity) => dial(port, identity)));
    const seen = new Map(peers.map((peer) => [peer.publicKey, peer]));
    expect([...seen.keys()].sort()).toEqual([agent, ...others].map(({ publicKey }) => publicKey).sort());
    expect(seen.get(agent.publicKey)).toMatchObject({
      nodeId: nodeIdOf(agent.publicKey),
      remoteAddress: '127.0.0.1',
    });
  });

  it('has a plain IPv4 address on a socket for both families', async () => {
    const { port, peers } = await start({ host: '::' });
    await dial(port);
    expect(peers[0]?.remoteAddress).toBe('127.0.0.1');
  });

  it('talks both ways', async () => {
    const { port, peers } = await start({
      onConnection: ({ socket }) => socket.on('message', (data) => socket.send(`you said ${data.toString()}`)),
    });
    const socket = await dial(port);
    const answer = new Promise<string>((resolve) => socket.on('message', (data) => resolve(data.toString())));
    socket.send('hello');
    expect(await answer).toBe('you said hello');
    expect(peers).toEqual([]);
  });
});

describe('whoever proves no key', () => {
  const upgrade = [
    'GET /agent/v1 HTTP/1.1',
    'Host: orchestrator',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    '',
    '',
  ].join('\r\n');

  it('would be let in with these words and a key', async () => {
    const { port, peers } = await start();
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...ours }, () =>
      socket.write(upgrade),
    );
    onTestFinished(() => {
      socket.destroy();
    });
    const answer = await new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())));
    expect(answer).toMatch(/^HTTP\/1\.1 101 /);
    expect(peers).toHaveLength(1);
  });

  it.each<[string, ConnectionOptions]>([
    ['shows no certificate', { ALPNProtocols: ours.ALPNProtocols }],
    ['has a P-256 key', { ...credentialsOf(generateKey('p256')), ALPNProtocols: ours.ALPNProtocols }],
    ['speaks TLS 1.2', { ...ours, maxVersion: 'TLSv1.2' }],
    ['speaks another protocol', { ...ours, ALPNProtocols: ['http/1.1'] }],
    ['speaks no protocol', credentialsOf(agent.privateKey)],
  ])('because it %s is cut off without an answer', async (_, options) => {
    const { port, peers } = await start();
    expect(await talk(port, options, upgrade)).toBe('');
    expect(peers).toEqual([]);
  });

  it('because it comes with the session of another is cut off', async () => {
    const { port, peers } = await start();
    const session = await handshake(port, ours, (socket) => {
      const given = new Promise<Buffer>((resolve) => socket.resume().once('session', resolve));
      return given;
    });
    expect(await talk(port, { ALPNProtocols: ours.ALPNProtocols, session }, upgrade)).toBe('');
    expect(peers).toEqual([]);
  });

  it('because it says nothing is cut off in time, in every phase', async () => {
    const timeouts = { handshake: 200, headers: 200, request: 300, check: 50 };
    const { port } = await start({ timeouts });
    const tcp = new Promise<void>((resolve) => {
      const socket = connectTcp(port, '127.0.0.1');
      socket.resume().on('error', () => undefined);
      socket.on('close', () => resolve());
    });
    await Promise.all([
      tcp,
      talk(port, ours, ''),
      talk(port, ours, 'GET /agent/v1 HTTP/1.1\r\nHost: x\r\n'),
      talk(port, ours, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc'),
    ]);
  });
});

describe('a plain request', () => {
  it.each([
    ['GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['GET /agent/v1 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['POST /api/v1/auth/challenge HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}'],
    [
      'GET /other HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    ],
    [
      'GET /agent/v1?x=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    ],
  ])('%j gets 404 and the connection ends', async (request) => {
    const { port, peers } = await start();
    expect(await talk(port, ours, request)).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
    expect(peers).toEqual([]);
  });

  it('that is no HTTP, or a broken upgrade, gets 400', async () => {
    const { port, peers } = await start();
    expect(await talk(port, ours, 'garbage\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
    const upgrade = 'GET /agent/v1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    expect(await talk(port, ours, upgrade)).toMatch(/^HTTP\/1\.1 400 /);
    expect(await talk(port, ours, `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
    expect(peers).toEqual([]);
  });
});

describe('a frame', () => {
  it('of more than 1 MiB closes the connection and nothing else', async () => {
    const sizes: number[] = [];
    const { port } = await start({
      onConnection: ({ socket }) => socket.on('message', (data) => sizes.push(data.toString().length)),
    });
    const [loud, quiet] = [await dial(port), await dial(port, newIdentity())];
    loud.send('x'.repeat(1024 * 1024));
    loud.send('x'.repeat(1024 * 1024 + 1));
    expect((await closeOf(loud)).code).toBe(1009);
    quiet.send('still here');
    await expect.poll(() => sizes).toEqual([1024 * 1024, 10]);
  });

  it('that breaks the protocol closes the connection and nothing else', async () => {
    const { port, peers } = await start();
    const socket = await dial(port);
    const closed = new Promise((resolve) => peers[0]?.socket.on('close', resolve));
    const { _socket: raw } = socket as unknown as { _socket: { write(bytes: Buffer): void } };
    raw.write(Buffer.from([0xff, 0xff, 0xff, 0xff]));
    await closed;
    await dial(port, newIdentity());
    expect(peers).toHaveLength(2);
  });

  it('is held to a lower limit while that is wanted', async () => {
    const sizes: number[] = [];
    const list: AgentPeer[] = [];
    const { port } = await start({
      onConnection: (peer) => {
        peer.limit(16 * 1024);
        peer.socket.on('message', (data) => sizes.push(data.toString().length));
        list.push(peer);
      },
    });
    const small = await dial(port);
    for (let count = 0; count < 40; count += 1) {
      small.send('x'.repeat(1_000));
      small.ping('x'.repeat(100));
      small.pong('x'.repeat(100));
    }
    await expect.poll(() => sizes.length).toBe(40);
    list[0]?.limit(null);
    small.send('x'.repeat(300 * 1024));
    await expect.poll(() => sizes.at(-1)).toBe(300 * 1024);

    const large = await dial(port, newIdentity());
    large.send('x'.repeat(300 * 1024));
    expect((await closeOf(large)).code).toBe(1009);
    expect(sizes).toHaveLength(41);
  });

  it('is held to a lower limit when it comes in pieces with pings between them', async () => {
    const { port } = await start({ onConnection: ({ limit }) => limit(16 * 1024) });
    const socket = await dial(port);
    const closed = closeOf(socket);
    const timer = setInterval(() => {
      if (socket.readyState !== socket.OPEN) return;
      socket.send('x'.repeat(1_000), { fin: false });
      socket.ping();
    }, 2);
    onTestFinished(() => clearInterval(timer));
    expect((await closed).code).toBe(1009);
  });
});

describe('the listener', () => {
  it('says which port is taken', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      taken.close();
    });
    const address = taken.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const error: unknown = await start({ port }).catch((caught) => caught);
    expect(isFault(error, 'port_in_use')).toBe(true);
    expect(error).toMatchObject({
      message: `127.0.0.1:${port} (agent_port) is already in use`,
      hint: expect.stringContaining('choose another agent_port'),
    });
  });

  it('says when the address is not of this machine', async () => {
    for (const host of ['192.0.2.1', 'nowhere.invalid']) {
      const error: unknown = await start({ host }).catch((caught) => caught);
      expect(isFault(error, 'invalid_config')).toBe(true);
      expect(error).toMatchObject({ message: `${host} is not an address of this machine` });
    }
  });

  it('cuts connections above its maximum', async () => {
    const { port, peers } = await start({ maxConnections: 1 });
    await dial(port);
    await expect(dial(port, newIdentity())).rejects.toMatchObject({ code: 'unreachable' });
    expect(peers).toHaveLength(1);
  });

  it('says goodbye when it stops, waits for no agent, and frees the port', async () => {
    const { listener, port } = await start({ timeouts: { stop: 200 } });
    const socket = await dial(port);
    const deaf = await dial(port, newIdentity());
    deaf.pause();
    const silent = connectTcp(port, '127.0.0.1');
    silent.on('error', () => undefined);
    await new Promise((resolve) => silent.once('connect', resolve));
    const closed = closeOf(socket);
    await listener.stop();
    expect(await closed).toEqual({ code: 1001, reason: 'the orchestrator stops' });
    await listener.stop();
    await expect(dial(port)).rejects.toMatchObject({ code: 'unreachable', data: { reason: 'refused' } });
    const again = await start({ port });
    await dial(port);
    expect(again.peers).toHaveLength(1);
  });

  it('can be stopped when it was never started, or failed to start', async () => {
    const options = { host: '192.0.2.1', port: 0, privateKey: orchestrator.privateKey, logger: silentLogger };
    const listener = new AgentListener({ ...options, onConnection: () => undefined });
    await listener.stop();
    await expect(listener.start()).rejects.toThrow();
    await listener.stop();
    expect(() => listener.address()).toThrow('has not been started');
  });
});

describe.runIf(has('openssl', 'version'))('openssl (needs openssl)', () => {
  const client = (port: number, ...more: readonly string[]) => ['s_client', '-connect', `127.0.0.1:${port}`, ...more];

  it('gets through the handshake with a key, and 404 for a plain request', async () => {
    const { port } = await start();
    const { cert, key } = credentialFiles();
    const args = client(port, '-tls1_3', '-cert', cert, '-key', key, '-alpn', 'orch-agent/1', '-ign_eof');
    const { output } = await runBeside('openssl', args, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(output).toMatch(/Peer signature type: ed25519/i);
    expect(output).toContain('ALPN protocol: orch-agent/1');
    expect(output).toContain('HTTP/1.1 404 Not Found');
  });

  it.each(['-tls1_2', '-tls1_1'])('does not get through with %s', async (version) => {
    const { port } = await start();
    const { status, output } = await runBeside('openssl', client(port, version, '-alpn', 'orch-agent/1'));
    expect(status).not.toBe(0);
    expect(output).toContain('no peer certificate available');
  });
});

describe('a visitor', () => {
  it('that sends no request is closed, and its place is free again', async () => {
    const answered: string[] = [];
    const { port } = await start({
      timeouts: { headers: 300, check: 50 },
      visitors: {
        answer: async ({ url }, response) => {
          answered.push(`${url}`);
          response.end();
        },
      },
    });
    const idle = () => talk(port, { ALPNProtocols: ['http/1.1'] }, '');
    const answers = await Promise.all(Array.from({ length: 16 }, idle));
    expect(answers.filter((answer) => !/^(HTTP\/1.1 408 |$)/.test(answer))).toEqual([]);
    await talk(port, {}, 'GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(answered).toEqual(['/x']);
  });

  it('gets one answer on a connection', async () => {
    const { port } = await start({ visitors: { answer: async (_, response) => void response.end('first') } });
    const request = 'GET /x HTTP/1.1\r\nHost: x\r\n\r\n';
    const answer = await talk(port, {}, `${request}${request}`);
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 404']);
  });
});

describe.runIf(has('curl', '--version'))('curl (needs curl)', () => {
  it('gets nowhere: not with its own protocols, nor with none', async () => {
    const { port, peers } = await start();
    const { cert, key } = credentialFiles();
    const args = ['-sS', '--insecure', '--max-time', '10', '--cert', cert, '--key', key, `https://127.0.0.1:${port}/`];
    const alert = await runBeside('curl', args);
    expect(alert).toEqual({ status: 35, output: '' });
    const cut = await runBeside('curl', ['--no-alpn', ...args]);
    expect([52, 56]).toContain(cut.status);
    expect(cut.output).toBe('');
    expect(peers).toEqual([]);
  });
});
