/** The example receiver of notifications takes what a real orchestrator sends, and nothing else. */
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../support/free-port.js';
import { Sandbox, until } from '../support/orch.js';

const SECRET = `whsec_${Buffer.from('a secret of 24 bytes or so').toString('base64')}`;

it('prints genuine notifications once, and refuses others', async () => {
  const sandbox = new Sandbox();
  onTestFinished(() => sandbox.dispose());
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  const script = fileURLToPath(new URL('../../examples/notifications/receiver.mjs', import.meta.url));
  const env = { ...sandbox.env, WEBHOOK_SECRET: SECRET, PORT: String(port) };
  const receiver = spawn(process.execPath, [script], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  receiver.stdout.on('data', (chunk) => (output += chunk));
  const ended = new Promise((resolve) => receiver.on('close', resolve));
  onTestFinished(async () => {
    receiver.kill('SIGKILL');
    await ended;
  });

  const post = (headers: Record<string, string>, body: string) =>
    fetch(url, { method: 'POST', headers, body }).then(({ status }) => status);
  await until(async () => (await fetch(url).catch(() => null)) !== null, 'the receiver listens');

  await sandbox.json(['operator', 'init']);
  const { ready } = await sandbox.serve(['--notifications-allow-networks', '127.0.0.0/8']);
  await sandbox.json(['profile', 'create', 't', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint]);
  await sandbox.json(['channels', 'add', 'script', '--type', 'webhook', '--to', url, '--secret', SECRET]);
  await sandbox.json(['channels', 'test', 'script']);
  await until(() => output.includes('channel.tested'), 'the test notification is printed');

  const body = JSON.stringify({ id: 'forged', severity: 'info', event_type: 'x', summary: 'forged' });
  const time = String(Math.floor(Date.now() / 1000));
  const signed = (key: string, at: string) =>
    `v1,${createHmac('sha256', Buffer.from(key, 'base64')).update(`forged.${at}.${body}`).digest('base64')}`;
  const headers = (signature: string, at = time) => ({
    'webhook-id': 'forged',
    'webhook-timestamp': at,
    'webhook-signature': signature,
  });
  const key = SECRET.slice('whsec_'.length);
  expect(await post(headers(signed('b3RoZXI=', time)), body)).toBe(401);
  expect(await post(headers(signed(key, '1000000000'), '1000000000'), body)).toBe(401);
  expect(await post({}, body)).toBe(401);
  expect(output).not.toContain('forged');
  expect(await post(headers(signed(key, time)), body)).toBe(204);
  expect(await post(headers(signed(key, time)), body)).toBe(204);
  await until(() => output.includes('forged'), 'the genuine one is printed');
  expect(output.match(/forged/g)).toHaveLength(1);
});
