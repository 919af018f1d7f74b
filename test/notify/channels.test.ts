/** Channels through the API: who may what, what is masked, what is sealed, and what the audit log says. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ulid } from 'ulid';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createApiServer } from '../../daemon/http/api-server.js';
import type { AddressRules } from '../../daemon/notify/address-policy.js';
import { channelHandlers } from '../../daemon/notify/channel-service.js';
import { notificationHandlers } from '../../daemon/notify/inbox.js';
import { channelRoutes } from '../../src/contract/channels.js';
import { notificationRoutes } from '../../src/contract/notifications.js';
import { machinesOf } from '../support/audit.js';
import { rejection } from '../support/database.js';
import {
  authenticate,
  authorize,
  authorizeOn,
  clock,
  type SendOptions,
  type Sent,
  send,
  storedKeys,
  tlsFiles,
} from '../support/http.js';
import { ADA, apply, type NotifyBench, openNotify, startReceiver, status } from '../support/notify.js';
import { openSecrets } from '../support/secrets.js';
import { StoreLab } from '../support/store-lab.js';

const SECRET = 'whsec_c2VjcmV0IHNpZ25pbmcga2V5';
const WEBHOOK = {
  channel_type: 'webhook',
  name: 'ops',
  config: { url: 'https://hooks.example.com/orch', secret: SECRET },
};

async function serve(rules: Partial<AddressRules> = {}) {
  const notify = await openNotify({ rules });
  onTestFinished(() => notify.close());
  const api = createApiServer({
    contract: { ...channelRoutes, ...notificationRoutes },
    handlers: { ...channelHandlers(notify), ...notificationHandlers(notify.inbox, machinesOf(notify)) },
    authenticate,
    authorize,
    authorizeOn,
    idempotency: await storedKeys(),
    logger: notify.logger,
    clock,
    newRequestId: ulid,
    listen: { host: '127.0.0.1', port: 0 },
    tls: tlsFiles(),
    trustProxyTls: false,
    validateAnswers: true,
  });
  await api.start();
  onTestFinished(() => api.stop());
  const call = (method: string, path: string, options: SendOptions = {}) =>
    send(api, method, `/api/v1${path}`, { token: 'admin', ...options });
  return { notify, call };
}

/** Every byte of the store. */
const bytesOf = ({ directory }: NotifyBench) => new StoreLab(join(directory, 'orch.db')).bytes();

describe('channels', () => {
  it('are made, shown masked, changed and deleted, and every change is in the audit log', async () => {
    const { notify, call } = await serve();
    const created = await call('POST', '/channels', { body: WEBHOOK });
    expect(created).toMatchObject({
      status: 201,
      json: {
        name: 'ops',
        channel_type: 'webhook',
        config: { url: 'https://hooks.example.com/orch', secret: '********' },
        created_by: 'a'.repeat(32),
        disabled_at: null,
        last_attempt: null,
      },
    });
    const path = `/channels/${created.json.id}`;
    const { config } = created.json;
    const shown = { ...created.json, config: { ...config, url: 'https://hooks.example.com/********' } };
    expect((await call('GET', path, { token: 'viewer' })).json).toEqual(shown);
    expect((await call('GET', '/channels', { token: 'viewer' })).json).toEqual([shown]);
    const renamed = await call('PUT', path, { body: { name: 'night shift' } });
    expect(renamed).toMatchObject({ status: 200, json: { name: 'night shift', config: { secret: '********' } } });
    expect(await call('PUT', path, { body: { name: null, config: null } })).toMatchObject({ status: 200 });
    const bare = await call('PUT', path, { body: { config: { url: 'https://hooks.example.com/other' } } });
    expect(bare.json.config).toEqual({ url: 'https://hooks.example.com/other' });
    expect(await call('DELETE', path)).toMatchObject({ status: 204 });
    for (const [method, at] of [
      ['GET', ''],
      ['PUT', ''],
      ['DELETE', ''],
      ['POST', '/test'],
      ['GET', '/deliveries'],
    ] as const) {
      const body = method === 'PUT' ? { body: {} } : {};
      expect(await call(method, path + at, body)).toMatchObject({ status: 404, json: { code: 'channel_not_found' } });
    }
    expect(notify.events.map(({ type, summary }) => `${type}: ${summary}`)).toEqual([
      'channel.created: admin created the webhook channel ops',
      'channel.updated: admin changed the name of the channel night shift',
      'channel.updated: admin changed the configuration of the channel night shift',
      'channel.deleted: admin deleted the channel night shift',
    ]);
    expect(JSON.stringify([notify.events, notify.logger.lines])).not.toContain(SECRET);
  });

  it('show addresses in full only to those who may change them', async () => {
    const { call } = await serve();
    const webhook = {
      ...WEBHOOK,
      config: { url: 'https://hooks.example.com/services/T1/B2?token=abc', secret: SECRET },
    };
    const { id } = (await call('POST', '/channels', { body: webhook })).json;
    const phone = {
      channel_type: 'ntfy',
      name: 'phone',
      config: { topic: 'my-fleet', url: 'https://ntfy.example.com' },
    };
    const { id: phoneId } = (await call('POST', '/channels', { body: phone })).json;
    for (const token of ['viewer', 'operator'] as const) {
      const list = await call('GET', '/channels', { token });
      const one = await call('GET', `/channels/${id}`, { token });
      const other = await call('GET', `/channels/${phoneId}`, { token });
      expect(one.json.config).toEqual({ url: 'https://hooks.example.com/********', secret: '********' });
      expect(other.json.config).toEqual({ topic: '********', url: 'https://ntfy.example.com' });
      for (const { text } of [list, one, other]) expect(text).not.toMatch(/services|token=|my-fleet/);
    }
    expect((await call('GET', `/channels/${id}`)).json.config.url).toBe(webhook.config.url);
    expect((await call('GET', `/channels/${phoneId}`)).json.config.topic).toBe('my-fleet');
  });

  it('receive what their filter lets through', async () => {
    const { notify, call } = await serve();
    const receivers = { drift: await startReceiver(), loud: await startReceiver(), all: await startReceiver() };
    const ids: Record<string, string> = {};
    for (const [name, filter] of [
      ['drift', { events: ['drift.*', 'agent.disconnected', 'drift.*'] }],
      ['loud', { min_severity: 'warning' }],
      ['all', {}],
    ] as const) {
      const config = { url: receivers[name].url };
      const created = await call('POST', '/channels', { body: { channel_type: 'webhook', name, config, ...filter } });
      ids[name] = created.json.id;
    }
    expect((await call('GET', `/channels/${ids.drift}`)).json).toMatchObject({
      events: ['agent.disconnected', 'drift.*'],
      min_severity: 'info',
    });
    const emitAll = () =>
      notify.emit(
        apply(),
        apply({ type: 'drift.detected' }),
        apply({ type: 'drift.resolved' }),
        apply({ type: 'agent.pending' }),
      );
    await emitAll();
    await receivers.all.has(4);
    await notify.deliveriesOnce(ids.loud ?? '', (all) => all.length === 2);
    await notify.deliveriesOnce(ids.drift ?? '', (all) => all.length === 2);
    const changed = await call('PUT', `/channels/${ids.drift}`, { body: { events: [], min_severity: 'critical' } });
    expect(changed.json).toMatchObject({ events: [], min_severity: 'critical' });
    await emitAll();
    await receivers.all.has(8);
    expect(await notify.channels.deliveries(ids.drift ?? '', { limit: 9 })).toHaveLength(2);
    expect(await call('POST', `/channels/${ids.drift}/test`)).toMatchObject({ status: 200 });
    expect(notify.events.map(({ summary }) => summary)).toContain('admin changed the filter of the channel drift');
  });

  it('refuse patterns that match no event, and name those that there are', async () => {
    const { call } = await serve();
    const made = await call('POST', '/channels', {
      body: { ...WEBHOOK, events: ['drift.*', 'drfit.*', 'drift.checked'] },
    });
    expect(made).toMatchObject({ status: 400, json: { code: 'invalid_body' } });
    expect(made.json.errors).toMatchObject([
      {
        path: '/events/1',
        message: expect.stringMatching(/^"drfit\.\*" matches no event .* there are agent\.\*, drift\.\*/),
      },
      { path: '/events/2', message: expect.stringMatching(/there are drift\.detected, drift\.resolved$/) },
    ]);
    for (const events of [['*.failed'], ['Drift.*'], ['drift*.x'], 'drift.*']) {
      expect(await call('POST', '/channels', { body: { ...WEBHOOK, events } })).toMatchObject({ status: 400 });
    }
  });

  it('have names of their own', async () => {
    const { notify, call } = await serve();
    const first = await call('POST', '/channels', { body: WEBHOOK });
    const again = await Promise.all([1, 2].map(() => call('POST', '/channels', { body: WEBHOOK })));
    for (const answer of again) {
      expect(answer.json).toMatchObject({ status: 409, code: 'channel_exists', id: first.json.id });
    }
    const other = await call('POST', '/channels', { body: { ...WEBHOOK, name: 'other' } });
    const renamed = await call('PUT', `/channels/${other.json.id}`, { body: { name: 'ops' } });
    expect(renamed.json).toMatchObject({ code: 'channel_exists' });
    expect(await call('PUT', `/channels/${first.json.id}`, { body: { name: 'ops' } })).toMatchObject({ status: 200 });
    expect(await notify.channels.list(true)).toHaveLength(2);
  });

  it.each([
    [
      'webhook',
      { url: 'https://10.0.0.7/x' },
      '/config/url',
      /10\.0\.0\.7 is not a public .*notifications\.allow_networks/,
    ],
    ['webhook', { url: 'https://[fe80::1]/x' }, '/config/url', /not a public address/],
    ['webhook', { url: 'https://0x7f.1:9/' }, '/config/url', /127\.0\.0\.1 is not a public/],
    ['webhook', { url: 'https://a.localhost/' }, '/config/url', /not a public address/],
    ['webhook', { url: 'http://hooks.example/' }, '/config/url', /not https.*notifications\.allow_http/],
    ['discord', { webhook_url: 'https://hooks.example:8444/' }, '/config/webhook_url', /port 8444 .*allow_networks/],
    ['ntfy', { topic: 'a', url: 'https://192.168.0.9' }, '/config/url', /not a public address/],
    ['webhook', { url: 'https://hooks.example/a\r\nb' }, '/config/url', /line breaks/],
    ['webhook', { url: ' https://hooks.example/' }, '/config/url', /white space/],
    ['webhook', { url: 'https://hooks.example/', secret: 'a\nb' }, '/config/secret', /line breaks/],
    ['webhook', { url: 'https://hooks.example/', secret: 'whsec_no base64' }, '/config/secret', /base64/],
    ['ntfy', { topic: 'a', token: 'tk_1\r\nX-Evil: 1' }, '/config/token', /line breaks/],
    ['ntfy', { topic: 'a', token: 'tk gruß' }, '/config/token', /visible ASCII/],
  ])('of the type %s with %j are refused at once', async (channel_type, config, path, message) => {
    const { notify, call } = await serve({ allowNetworks: [] });
    const { json } = await call('POST', '/channels', { body: { channel_type, name: 'one', config } });
    expect(json).toMatchObject({
      status: 400,
      code: 'invalid_body',
      errors: [{ path, message: expect.stringMatching(message) }],
    });
    expect(await notify.channels.list(true)).toEqual([]);
  });

  it('of addresses that may turn out to be allowed wait for their first delivery', async () => {
    const { call } = await serve({ allowNetworks: ['10.0.0.0/8'] });
    for (const url of ['http://hooks.example:8080/', 'https://10.1.2.3:9/']) {
      const body = { channel_type: 'webhook', name: url, config: { url } };
      expect((await call('POST', '/channels', { body })).status).toBe(201);
    }
  });

  it.each([
    [
      'discord',
      { webhook_url: 'https://discord.com/api/webhooks/1/t0ken' },
      { webhook_url: 'https://discord.com/********' },
    ],
    [
      'slack',
      { webhook_url: 'https://hooks.slack.com/services/T/B/t0ken' },
      { webhook_url: 'https://hooks.slack.com/********' },
    ],
    ['ntfy', { topic: 'fleet', token: 'tk_t0ken', priority: 4 }, { topic: 'fleet', token: '********', priority: 4 }],
    ['webhook', { url: 'https://a.example/x', secret: 't0ken' }, { url: 'https://a.example/x', secret: '********' }],
  ])('of the type %s hide what is secret, which a masked value keeps', async (channel_type, config, masked) => {
    const { notify, call } = await serve();
    const { json } = await call('POST', '/channels', { body: { channel_type, name: 'one', config } });
    expect(json.config).toEqual(masked);
    const kept = await call('PUT', `/channels/${json.id}`, { body: { config: { ...masked } } });
    expect(kept.json.config).toEqual(masked);
    const [row] = await notify.db.selectFrom('channels').selectAll().execute();
    expect(row === undefined ? null : JSON.parse(notify.secrets.channelCipher.open(row))).toEqual(config);
    expect(bytesOf(notify)).not.toContain('t0ken');
    await notify.close();
    expect(bytesOf(notify)).not.toContain('t0ken');
  });

  it.each([
    ['an unknown type', { ...WEBHOOK, channel_type: 'pager' }, '/channel_type'],
    ['no configuration', { channel_type: 'webhook', name: 'x' }, '/config'],
    ['an empty name', { ...WEBHOOK, name: '' }, '/name'],
    ['an unknown key', { ...WEBHOOK, config: { url: 'https://a.example', colour: 1 } }, '/config/colour'],
    ['a missing key', { ...WEBHOOK, config: {} }, '/config/url'],
    [
      'the key of another type',
      { channel_type: 'slack', name: 'x', config: { url: 'https://a.example' } },
      '/config/url',
    ],
    ['no URL', { ...WEBHOOK, config: { url: 'hooks' } }, '/config/url'],
    ['another scheme', { ...WEBHOOK, config: { url: 'gopher://a.example' } }, '/config/url'],
    ['a password in the URL', { ...WEBHOOK, config: { url: 'https://me:pw@a.example' } }, '/config/url'],
    [
      'a masked secret of nothing',
      { ...WEBHOOK, config: { url: 'https://a.example', secret: '********' } },
      '/config/secret',
    ],
    ['a bad topic', { channel_type: 'ntfy', name: 'x', config: { topic: 'a/b' } }, '/config/topic'],
    [
      'a topic in the address',
      { channel_type: 'ntfy', name: 'x', config: { topic: 'a', url: 'https://ntfy.sh/a' } },
      '/config/url',
    ],
    ['a bad priority', { channel_type: 'ntfy', name: 'x', config: { topic: 'a', priority: 9 } }, '/config/priority'],
  ])('are refused with %s', async (_what, body, path) => {
    const { call, notify } = await serve();
    const refused = await call('POST', '/channels', { body });
    expect(refused).toMatchObject({ status: 400, json: { code: 'invalid_body' } });
    expect(refused.json.errors.map((error: { path: string }) => error.path)).toContain(path);
    expect(notify.events).toEqual([]);
  });

  it('take a masked address for the stored one only', async () => {
    const { call } = await serve();
    const config = { webhook_url: 'https://discord.com/api/webhooks/1/t0ken' };
    const { json } = await call('POST', '/channels', { body: { channel_type: 'discord', name: 'd', config } });
    const other = { config: { webhook_url: 'https://evil.example/********' } };
    expect(await call('PUT', `/channels/${json.id}`, { body: other })).toMatchObject({
      status: 400,
      json: {
        errors: [{ path: '/config/webhook_url', message: expect.stringContaining('https://discord.com/********') }],
      },
    });
  });

  it('are for admins to change, and for everybody to see', async () => {
    const { call } = await serve();
    const { json } = await call('POST', '/channels', { body: WEBHOOK });
    for (const token of ['operator', 'viewer']) {
      const refused = { status: 403, json: { code: 'admin_required' } };
      expect(await call('POST', '/channels', { token, body: WEBHOOK })).toMatchObject(refused);
      expect(await call('PUT', `/channels/${json.id}`, { token, body: {} })).toMatchObject(refused);
      expect(await call('DELETE', `/channels/${json.id}`, { token })).toMatchObject(refused);
      expect(await call('POST', `/channels/${json.id}/test`, { token })).toMatchObject(refused);
      expect(await call('GET', `/channels/${json.id}/deliveries`, { token })).toMatchObject({ status: 200, json: [] });
    }
  });

  it('are tried out, and say what the answer was', async () => {
    const { notify, call } = await serve();
    const receiver = await startReceiver();
    const { json } = await call('POST', '/channels', { body: { ...WEBHOOK, config: { url: receiver.url } } });
    const path = `/channels/${json.id}/test`;
    expect(await call('POST', path)).toMatchObject({
      status: 200,
      json: { delivered: true, status_code: 200, duration_ms: expect.any(Number) },
    });
    expect(JSON.parse(receiver.requests[0]?.body ?? '')).toMatchObject({
      event_type: 'channel.tested',
      summary: 'This is a test of the channel ops, sent by admin.',
    });
    receiver.answer(status(500));
    expect(await call('POST', path)).toMatchObject({
      status: 502,
      json: { code: 'delivery_failed', reason: 'refused', status_code: 500 },
    });
    expect(notify.events.slice(1)).toMatchObject([
      { type: 'channel.tested', metadata: { delivered: true, status_code: 200 } },
      { type: 'channel.tested', metadata: { delivered: false, status_code: 500, reason: 'refused' } },
    ]);
    expect((await call('GET', '/notifications')).json).toEqual({ notifications: [], unread_count: 0 });
  });

  it('that were disabled are enabled by a test that succeeds', async () => {
    const { notify, call } = await serve();
    const receiver = await startReceiver();
    receiver.answer(status(410));
    const { json } = await call('POST', '/channels', { body: { ...WEBHOOK, config: { url: receiver.url } } });
    await notify.emit(apply());
    await notify.deliveriesOnce(json.id, ([one]) => one?.state === 'failed');
    expect((await call('GET', `/channels/${json.id}`)).json.disabled_at).not.toBeNull();
    receiver.answer(status(200));
    await call('POST', `/channels/${json.id}/test`);
    expect((await call('GET', `/channels/${json.id}`)).json.disabled_at).toBeNull();
  });
});

type Call = Awaited<ReturnType<typeof serve>>['call'];

/** The records of all pages, as the Link headers lead from one to the next. */
async function walk(call: Call, path: string, textsOf: (json: Sent['json']) => readonly string[]) {
  const pages: (readonly string[])[] = [];
  for (let next: string | null = path; next !== null; ) {
    const answer: Sent = await call('GET', next);
    expect(answer.status).toBe(200);
    pages.push(textsOf(answer.json));
    next = /^<\/api\/v1([^>]+)>; rel="next"$/.exec(String(answer.headers.link))?.[1] ?? null;
  }
  return pages;
}

describe('lists', () => {
  it('lead from page to page, without a Link on the last', async () => {
    const { notify, call } = await serve();
    const receiver = await startReceiver();
    const { json } = await call('POST', '/channels', { body: { ...WEBHOOK, config: { url: receiver.url } } });
    const texts = ['one', 'two', 'three', 'four'];
    for (const summary of texts) await notify.emit({ type: 'drift.detected', summary });
    const summaries = (found: readonly { readonly summary: string }[]) => found.map(({ summary }) => summary);
    const pages = [
      ['four', 'three'],
      ['two', 'one'],
    ];
    expect(await walk(call, '/notifications?limit=2', (found) => summaries(found.notifications))).toEqual(pages);
    expect(await walk(call, `/channels/${json.id}/deliveries?limit=2`, summaries)).toEqual(pages);
    expect(await walk(call, '/notifications?limit=4', (found) => summaries(found.notifications))).toHaveLength(1);
    expect(await call('GET', '/notifications?cursor=x')).toMatchObject({
      status: 400,
      json: { code: 'invalid_query' },
    });
  });
});

describe('notifications', () => {
  it('are listed and marked over the API, by viewers too', async () => {
    const { notify, call } = await serve();
    for (const summary of ['one', 'two', 'three']) await notify.emit({ type: 'drift.detected', summary });
    const viewer = { token: 'viewer' };
    const { json } = await call('GET', '/notifications?limit=2', viewer);
    expect(json).toMatchObject({
      notifications: [{ summary: 'three', read: false }, { summary: 'two' }],
      unread_count: 3,
    });
    expect(await call('POST', `/notifications/${json.notifications[0].id}/read`, viewer)).toMatchObject({
      status: 204,
    });
    expect((await call('GET', '/notifications?unread=true', viewer)).json).toMatchObject({
      notifications: [{ summary: 'two' }, { summary: 'one' }],
      unread_count: 2,
    });
    expect((await call('GET', '/notifications')).json.unread_count).toBe(3);
    expect(await call('POST', '/notifications/read-all', viewer)).toMatchObject({ status: 204 });
    expect((await call('GET', '/notifications?unread=true', viewer)).json).toEqual({
      notifications: [],
      unread_count: 0,
    });
    expect(await call('POST', '/notifications/nothing/read', viewer)).toMatchObject({
      status: 404,
      json: { code: 'notification_not_found' },
    });
    expect(await call('GET', '/notifications?limit=-1', viewer)).toMatchObject({ status: 400 });
    expect((await call('GET', '/notifications?limit=99999', viewer)).json.notifications).toHaveLength(3);
  });
});

describe('the key of the secrets', () => {
  it('is changed with channels there, which go on', async () => {
    const receiver = await startReceiver();
    const notify = await openNotify();
    const { id } = await notify.channel('webhook', { url: receiver.url, secret: 'one' });
    const before = await notify.db.selectFrom('channels').select(['sealed', 'key_id']).executeTakeFirstOrThrow();
    expect(await notify.secrets.rotation.rotate()).toMatchObject({ secrets: 0, outputs: 0, channels: 1 });
    const after = await notify.db.selectFrom('channels').select(['sealed', 'key_id']).executeTakeFirstOrThrow();
    expect(after.key_id).not.toBe(before.key_id);
    await notify.emit(apply());
    await notify.deliveriesOnce(id, ([one]) => one?.state === 'delivered');
    await notify.close();
    const again = await openNotify({ directory: notify.directory, clock: notify.clock });
    onTestFinished(() => again.close());
    expect((await again.channels.get(id, true)).body.config).toEqual({ url: receiver.url, secret: '********' });
  });

  it('is missed at the start when there are channels and no secrets', async () => {
    const notify = await openNotify();
    await notify.channel('slack', { webhook_url: 'https://hooks.slack.com/services/x' });
    await notify.close();
    const directory = `${notify.directory}/other`;
    mkdirSync(directory);
    new StoreLab(join(notify.directory, 'orch.db')).copyTo(join(directory, 'orch.db'));
    expect(await rejection(openSecrets({ directory }))).toMatchObject({ code: 'secrets_locked' });
  });

  it('that cannot open a configuration leaves the channel to be seen, and to be set anew', async () => {
    const receiver = await startReceiver();
    const notify = await openNotify();
    onTestFinished(() => notify.close());
    const { id } = await notify.channel('webhook', { url: receiver.url, secret: 'one' });
    await notify.db
      .updateTable('channels')
      .set({ sealed: Buffer.alloc(80).toString('base64') })
      .execute();
    expect((await notify.channels.get(id, true)).body.config).toEqual({});
    const failed = await rejection(notify.tester.test(id, ADA, new AbortController().signal));
    expect(failed).toMatchObject({ code: 'delivery_failed', data: { reason: 'secrets_locked' } });
    await notify.channels.update(id, { config: { url: receiver.url } }, ADA);
    expect(await notify.tester.test(id, ADA, new AbortController().signal)).toMatchObject({ delivered: true });
  });
});
