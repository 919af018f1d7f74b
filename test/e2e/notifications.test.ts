/** Notifications with the real program: events go to a real server, across restarts and a new key. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Channel, ChannelTest } from '../../src/contract/channels.js';
import type { NotificationList } from '../../src/contract/notifications.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';

const SECRET = 'c0rrect-H0rse+batt3ry';
const sandbox = new Sandbox();
const config = sandbox.path('orchestrator.yaml');
let server: Running;
let ready: Ready;
let receiver: Server;
let answer = 200;
const received: {
  readonly headers: IncomingHttpHeaders;
  readonly body: { id: string; event_type: string; summary: string };
}[] = [];

const told = (type: string) => received.filter(({ body }) => body.event_type === type);

async function serve(args: readonly string[] = []): Promise<void> {
  ({ server, ready } = await sandbox.serve(['--config', config, ...args]));
  sandbox.env.ORCH_URL = ready.api_url;
  sandbox.env.ORCH_TLS_FINGERPRINT = ready.tls_fingerprint;
}

const orch = async (...args: readonly string[]) => {
  const done = await sandbox.orch(args);
  if (done.status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${done.status}:\n${done.stderr}`);
  return done.stdout;
};

beforeAll(async () => {
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) });
      response.writeHead(answer).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  writeFileSync(config, 'removal_guard: 10\n');
  await orch('operator', 'init');
  await serve();
});

afterAll(async () => {
  await sandbox.dispose();
  receiver.closeAllConnections();
  receiver.close();
});

describe('an operator', () => {
  it('names the setting that keeps a channel from its address, and the setting takes effect on SIGHUP', async () => {
    const { port } = receiver.address() as AddressInfo;
    const to = `http://127.0.0.1:${port}/hook`;
    const add = ['channels', 'add', 'ops', '--type', 'webhook', '--to', to, '--secret', SECRET];
    const refused = await sandbox.orch(add);
    expect(refused.status).not.toBe(0);
    expect(refused.stderr).toContain('127.0.0.1 is not a public address');
    expect(refused.stderr).toContain('notifications.allow_networks');
    expect(received).toEqual([]);
    writeFileSync(config, 'notifications:\n  allow_networks: [127.0.0.0/8]\n  allow_http: true\n');
    server.process.kill('SIGHUP');
    await until(async () => (await sandbox.orch(add)).status === 0, 'the channel is made');
    const again = await sandbox.orch(add);
    expect(again.status).not.toBe(0);
    expect(again.stderr).toContain('there is a channel named "ops" already');
    const tested = await sandbox.json<ChannelTest>(['channels', 'test', 'ops']);
    expect(tested).toMatchObject({ delivered: true, status_code: 200 });
    expect(told('channel.tested').at(-1)?.headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
  });

  it('hears of an agent that waits, and marks it as read', async () => {
    sandbox.start([
      'agent',
      'connect',
      ready.agent_address,
      '--orchestrator-key',
      ready.public_key,
      '--data-dir',
      sandbox.path('agent'),
    ]);
    await until(() => told('agent.pending').length === 1, 'the agent was told of');
    const unread = await sandbox.json<NotificationList>(['notifications', '--unread']);
    const [pending] = unread.notifications.filter(({ event_type }) => event_type === 'agent.pending');
    expect(told('agent.pending')[0]?.headers['webhook-id']).toBe(pending?.id);
    expect(told('agent.pending')[0]?.body.summary).toBe(pending?.summary);
    await orch('notifications', 'read', pending?.id ?? '');
    const after = await sandbox.json<NotificationList>(['notifications', '--unread']);
    expect(after.unread_count).toBe(unread.unread_count - 1);
    await orch('notifications', 'read-all');
    expect(await orch('notifications', '--unread')).toContain('You have read everything.');
  });

  it('is sent after the orchestrator was killed with something to send', async () => {
    answer = 500;
    const jwk = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
    const key = Buffer.from(jwk.x ?? '', 'base64url').toString('hex');
    await orch('operator', 'add', key, '--username', 'grace', '--role', 'viewer');
    await until(() => told('operator.added').length === 1, 'it was tried');
    await server.stop('SIGKILL');
    answer = 200;
    await serve();
    await until(() => told('operator.added').length === 2, 'it was tried again');
    const [first, second] = told('operator.added');
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(second?.body).toEqual(first?.body);
    await until(async () => (await orch('channels', 'show', 'ops')).includes('delivered'), 'it is in the log');
  });

  it('changes the key of the secrets, and channels go on', async () => {
    expect(await orch('serve', 'rotate-secrets-key', '--data-dir', sandbox.path('serve'))).toContain(
      '0 secrets and 1 channel',
    );
    await orch('channels', 'test', 'ops');
    const [channel] = await sandbox.json<Channel[]>(['channels']);
    expect(channel).toMatchObject({ name: 'ops', config: { secret: '********' }, last_attempt: { delivered: true } });
    expect(server.output()).not.toContain(SECRET);
  });

  it('is refused a network that is none', async () => {
    const refused = await sandbox.orch([
      'serve',
      '--data-dir',
      sandbox.path('none'),
      '--notifications-allow-networks',
      '10.0.0.0/8,home',
    ]);
    expect(refused.status).not.toBe(0);
    expect(refused.stderr).toContain('notifications.allow_networks: "home" is no network');
  });
});
