/** Forwards over links that are slow, fall silent or are cut, and beside ends that reset, stop or are killed. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { FORWARD_LIMITS } from '../../src/terminal/forward-limits.js';
import { itInLong } from '../support/exhaustive.js';
import {
  auditEvents,
  closed,
  dial,
  echo,
  echoed,
  type Forwarding,
  forward,
  readAll,
  Targets,
} from '../support/forwarding.js';
import { until } from '../support/orch.js';
import { SlowWay } from '../support/slow-way.js';
import { childrenOf, commandLine, TerminalFleet } from '../support/terminal-fleet.js';

const targets = new Targets();
let fleet: TerminalFleet;
let echoPort = 0;
let echoPath = '';
/** Breaks each connection at its first bytes. */
let rudePort = 0;

beforeAll(async () => {
  fleet = await TerminalFleet.start();
  echoPath = fleet.sandbox.path('echo.sock');
  echoPort = await targets.serve(echo);
  await targets.serve(echo, echoPath);
  rudePort = await targets.serve((socket) => socket.once('data', () => socket.resetAndDestroy()));
  writeFileSync(fleet.sandbox.path('agent.yaml'), `forward: {targets: ['127.0.0.1:*', '${echoPath}']}\n`);
  await until(async () => {
    const { running, port } = await forward(fleet, `0:${echoPath}`);
    await running.stop('SIGINT');
    return port > 0;
  }, 'the agent has read its settings');
});

afterAll(async () => {
  targets.close();
  await fleet.dispose();
});

async function open(...specs: readonly string[]): Promise<Forwarding> {
  const forwarding = await forward(fleet, ...specs);
  onTestFinished(async () => {
    await forwarding.running.stop('SIGINT');
  });
  return forwarding;
}

const hostPids = () => childrenOf(fleet.agentPid).filter((pid) => commandLine(pid).includes('forward-host'));

async function works(to: number | string): Promise<boolean> {
  const socket = dial(to);
  socket.end('again');
  return (await readAll(socket).catch(() => Buffer.alloc(0))).toString() === 'again';
}

/** Sends a word over an open connection. Returns true when it comes back. */
async function stillEchoes(socket: Socket): Promise<boolean> {
  const came = new Promise<boolean>((resolve) => {
    socket.once('data', () => resolve(true));
    socket.once('close', () => resolve(false));
  });
  socket.write('still here');
  return await came;
}

it('breaks one connection alone when an end resets it, also beside Unix sockets', async () => {
  const path = fleet.sandbox.path('rude.sock');
  const { ports, running } = await open(`0:${echoPath}`, `${path}:127.0.0.1:${rudePort}`);
  const other = await open(`0:127.0.0.1:${echoPort}`);
  const [toPath = 0] = ports;
  const beside = [await echoed(toPath), await echoed(other.port)] as const;
  const host = hostPids();
  // The target is a Unix socket, and the client's end resets.
  (await echoed(toPath)).resetAndDestroy();
  // The client's end is a Unix socket, and the target resets.
  await expect(echoed(path)).rejects.toThrow('was closed');
  await expect(echoed(path)).rejects.toThrow('was closed');
  expect(await Promise.all(beside.map(stillEchoes))).toEqual([true, true]);
  expect(await works(toPath)).toBe(true);
  expect(hostPids()).toEqual(host);
  expect(running.process.exitCode).toBeNull();
});

it('refuses more connections than a forward, and than an agent may carry, until others end', async () => {
  const { agentChannels, channels } = FORWARD_LIMITS;
  const spec = `0:127.0.0.1:${echoPort}`;
  const full = await Promise.all(Array.from({ length: agentChannels / channels }, () => open(spec)));
  const sockets = await Promise.all(full.flatMap(({ port }) => Array.from({ length: channels }, () => echoed(port))));
  const more = await open(spec);
  await expect(echoed(more.port)).rejects.toThrow('was closed');
  await until(() => more.running.output().includes(`the agent has ${agentChannels} connections open`), 'it says so');
  const [first] = full;
  await expect(echoed(first?.port ?? 0)).rejects.toThrow('was closed');
  const refusal = `more than ${channels} connections at the same time`;
  await until(() => first?.running.output().includes(refusal) === true, 'it says so');
  for (const socket of sockets) socket.destroy();
  await until(() => works(more.port), 'there is room again');
});

it('ends connections of Unix sockets when a link is cut, and keeps both programs', async () => {
  const path = fleet.sandbox.path('cut.sock');
  const { running } = await open(`${path}:${echoPath}`);
  for (const cable of [fleet.agentCable, fleet.operatorCable]) {
    const sockets = [await echoed(path), await echoed(path)];
    const host = hostPids();
    const ended = sockets.map(closed);
    cable.cut();
    await Promise.all(ended);
    await until(() => works(path), 'a new connection works');
    expect(hostPids()).toEqual(host);
  }
  expect(running.process.exitCode).toBeNull();
});

it('carries bytes exactly over a slow link that stands still for a while', async () => {
  const { url, pin } = fleet.profile;
  const way = await SlowWay.to(Number(new URL(url).port), 60);
  onTestFinished(() => way.close());
  const direct = await open(`0:127.0.0.1:${echoPort}`);
  const options = ['--url', `https://127.0.0.1:${way.port}`, '--tls-fingerprint', pin];
  const slow = await open(...options, `0:127.0.0.1:${echoPort}`, `0:${echoPath}`);
  const transfers = slow.ports.flatMap((port) =>
    Array.from({ length: 5 }, async () => {
      const bytes = randomBytes(300_000);
      const socket = dial(port);
      socket.end(bytes);
      return (await readAll(socket)).equals(bytes);
    }),
  );
  const first = await echoed(slow.port);
  way.hold();
  expect(await works(direct.port)).toBe(true);
  way.release();
  expect(await stillEchoes(first)).toBe(true);
  expect(await Promise.all(transfers)).toEqual(transfers.map(() => true));
});

// It is noticed after half a minute.
itInLong('ends connections over a link that has fallen silent, records that, and connects anew', async () => {
  const { running, port } = await open(`0:127.0.0.1:${echoPort}`);
  const socket = await echoed(port);
  const ended = closed(socket);
  fleet.operatorCable.silence();
  await ended;
  expect(running.output()).toContain('the orchestrator has fallen silent');
  await until(() => works(port), 'a new connection works');
  await until(async () => {
    const events = await auditEvents(fleet.sandbox, 'forward.closed');
    return events.some(({ metadata }) => metadata.reason === 'client_lost' && metadata.bytes_sent === 4);
  }, 'the loss is recorded');
});

it('records who sent how much when the orchestrator stops, and goes on when it is back', async () => {
  const { running, port } = await open(`0:127.0.0.1:${echoPort}`);
  const socket = await echoed(port);
  const ended = closed(socket);
  await fleet.restartServer('SIGTERM');
  await ended;
  const [event] = await auditEvents(fleet.sandbox, 'forward.closed');
  const [opened] = await auditEvents(fleet.sandbox, 'forward.opened');
  expect(event?.metadata).toMatchObject({
    session_id: opened?.metadata.session_id,
    reason: 'orchestrator_stopped',
    connections: 1,
    bytes_sent: 4,
    bytes_received: 4,
  });
  expect(opened?.actor).toMatchObject({ type: 'operator' });
  await fleet.connected();
  await until(() => works(port), 'a new connection works');
  expect(running.output()).toContain('the orchestrator is stopping; open connections were ended');
});

it('gets its end in the audit log at the next start when the orchestrator is killed, and the agent ends its connections', async () => {
  const { port } = await open(`0:127.0.0.1:${echoPort}`);
  const socket = await echoed(port);
  const ended = closed(socket);
  const [opened] = await auditEvents(fleet.sandbox, 'forward.opened');
  await fleet.restartServer('SIGKILL');
  await ended;
  await fleet.connected();
  const events = await auditEvents(fleet.sandbox, 'forward.closed');
  const own = events.filter(({ metadata }) => metadata.session_id === opened?.metadata.session_id);
  expect(own.map(({ metadata }) => metadata.reason)).toEqual(['orchestrator_lost']);
  await until(() => works(port), 'a new connection works');
});
