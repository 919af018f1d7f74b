/** Channels and notifications, as people see them and as the API is asked. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Channel, Delivery } from '../../src/contract/channels.js';
import type { Notification } from '../../src/contract/notifications.js';
import { expectGolden, Home, NOW, type RunOptions, runOrch, transcript } from '../support/cli.js';
import { readings, ulid } from '../support/cli-world.js';
import { type FakeApi, loggedIn, type Request, startFakeApi } from '../support/fake-api.js';

let api: FakeApi;
const home = new Home();
/** Bodies that were sent. */
let sent: unknown[];

const AT = NOW / 1000;

const ops: Channel = {
  id: ulid(1),
  name: 'ops',
  channel_type: 'webhook',
  config: { url: 'https://hooks.example.com/orch', secret: '********' },
  created_at: AT - 86_400,
  created_by: 'aaaa1111',
  events: [],
  min_severity: 'info',
  disabled_at: null,
  paused_until: null,
  last_attempt: { at: AT - 120, delivered: true, status_code: 200, error: null },
};
const team: Channel = {
  ...ops,
  id: ulid(2),
  name: 'team',
  channel_type: 'slack',
  config: { webhook_url: 'https://hooks.slack.com/********' },
  events: ['agent.*', 'drift.*'],
  min_severity: 'warning',
  last_attempt: { at: AT - 30, delivered: false, status_code: 500, error: 'the answer was 500' },
};
const phone: Channel = {
  ...ops,
  id: ulid(3),
  name: 'phone',
  channel_type: 'ntfy',
  config: { topic: 'fleet', token: '********', priority: 4 },
  paused_until: AT + 43,
  last_attempt: null,
};
const chat: Channel = {
  ...team,
  id: ulid(4),
  name: 'chat',
  channel_type: 'discord',
  config: { webhook_url: 'https://discord.com/********' },
  disabled_at: AT - 3600,
};

const notification = (index: number, change: Partial<Notification> = {}): Notification => ({
  id: ulid(10 + index),
  event_id: ulid(20 + index),
  event_type: 'state.apply_failed',
  severity: 'warning',
  summary: 'the apply of module site on web-01 failed: 1 failed of 3',
  timestamp_ms: NOW - index * 60_000,
  read: false,
  ...change,
});

const deliveries: readonly Delivery[] = [
  {
    notification_id: ulid(10),
    event_type: 'state.apply_failed',
    summary: 'the apply of module site on web-01 failed: 1 failed of 3',
    state: 'pending',
    attempts: 2,
    next_attempt_at: AT + 300,
    status_code: 500,
    error: 'the answer was 500',
    updated_at: AT - 5,
  },
  {
    notification_id: ulid(11),
    event_type: 'drift.detected',
    summary: 'web-01 has drifted from what was applied',
    state: 'delivered',
    attempts: 1,
    next_attempt_at: null,
    status_code: 200,
    error: null,
    updated_at: AT - 3600,
  },
];

const taking = (body: unknown, status?: number) => (request: Request) => {
  sent.push(request.body);
  return { body, ...(status === undefined ? {} : { status }) };
};

beforeAll(async () => {
  api = await startFakeApi();
});
beforeEach(() => {
  sent = [];
  api.answer({
    ...readings,
    listChannels: { body: [ops, team, phone, chat] },
    getChannel: ({ params: { id } }) => ({ body: [ops, team, phone, chat].find((one) => one.id === id) }),
    listDeliveries: { body: deliveries },
    createChannel: taking(ops),
    updateChannel: taking(ops),
    removeChannel: taking(undefined, 204),
    testChannel: { body: { delivered: true, status_code: 200, duration_ms: 42 } },
    listNotifications: {
      body: {
        notifications: [
          notification(0, {
            event_type: 'agent.duplicate_identity',
            severity: 'critical',
            summary: 'A second agent\u202e with the key of web-01',
          }),
          notification(1),
          notification(2, { read: true }),
        ],
        unread_count: 2,
      },
    },
    readNotification: taking(undefined, 204),
    readAllNotifications: taking(undefined, 204),
  });
});
afterAll(async () => {
  home.dispose();
  await api.stop();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(argv, { ...options, env: { ...loggedIn(api), NO_COLOR: '1', ...options.env } });

describe('a person sees', () => {
  it.each([
    ['channels', ['channels']],
    ['channels-wide', ['channels', '-o', 'wide']],
    ['channels-show', ['channels', 'show', 'ops']],
    ['channels-show-disabled', ['channels', 'show', ulid(4)]],
    ['channels-unknown', ['channels', 'show', 'nobody']],
    ['channels-add', ['channels', 'add', 'ops', '--type', 'webhook', '--to', 'https://hooks.example.com/orch']],
    ['channels-add-no-type', ['channels', 'add', 'ops']],
    ['channels-add-no-topic', ['channels', 'add', 'ops', '--type', 'ntfy']],
    ['channels-add-wrong-option', ['channels', 'add', 'ops', '--type', 'slack', '--topic', 'x']],
    ['channels-add-no-terminal', ['channels', 'add', 'ops', '--type', 'slack']],
    ['channels-update', ['channels', 'update', 'ops', '--name', 'night-shift']],
    ['channels-update-nothing', ['channels', 'update', 'ops']],
    ['channels-test', ['channels', 'test', 'ops']],
    ['channels-remove', ['channels', 'remove', 'ops', '--yes']],
    ['channels-remove-no-terminal', ['channels', 'remove', 'ops']],
    ['notifications', ['notifications']],
    ['notifications-wide', ['notifications', 'list', '--unread', '-o', 'wide']],
    ['notifications-read', ['notifications', 'read', ulid(10), ulid(11)]],
    ['notifications-read-all', ['notifications', 'read-all']],
  ])('%s', async (name, argv) => {
    expectGolden(name, transcript(argv, await run(argv)));
  });

  it('why a test was not delivered', async () => {
    const detail =
      '127.0.0.1 is not a public address; if it is meant, name its network in notifications.allow_networks';
    api.answer({
      testChannel: {
        problem: 'delivery_failed',
        detail: `the channel ops could not be reached: ${detail}`,
        more: { reason: 'address_not_allowed' },
      },
    });
    const argv = ['channels', 'test', 'ops'];
    const ran = await run(argv);
    expect(ran.status).toBe(1);
    expectGolden('channels-test-refused', transcript(argv, ran));
  });

  it('that a name stands for several', async () => {
    api.answer({ listChannels: { body: [ops, { ...team, name: 'ops' }] } });
    const argv = ['channels', 'show', 'ops'];
    const ran = await run(argv);
    expect(ran.status).toBe(64);
    expectGolden('channels-ambiguous', transcript(argv, ran));
  });
});

describe('the API is asked', () => {
  it.each([
    [
      ['webhook', '--to', 'https://a.example/x', '--secret', 's'],
      { config: { url: 'https://a.example/x', secret: 's' }, channel_type: 'webhook', name: 'n' },
    ],
    [['slack', '--to', 'https://a.example/x'], { config: { webhook_url: 'https://a.example/x' } }],
    [['discord', '--to', 'https://a.example/x'], { config: { webhook_url: 'https://a.example/x' } }],
    [
      ['slack', '--to', 'https://a.example/x', '--events', 'drift.*,agent.pending', '--min-severity', 'warning'],
      { events: ['drift.*', 'agent.pending'], min_severity: 'warning' },
    ],
    [
      ['ntfy', '--topic', 't', '--token', 'tk', '--priority', '5', '--to', 'https://a.example'],
      { config: { topic: 't', token: 'tk', priority: 5, url: 'https://a.example' } },
    ],
  ])('to add %j', async ([type = '', ...options], body) => {
    expect((await run(['channels', 'add', 'n', '--type', type, ...options])).status).toBe(0);
    expect(sent).toMatchObject([body]);
  });

  it('with a configuration of a file, of standard input, or typed unseen', async () => {
    const file = home.file('config.json');
    const config = { webhook_url: 'https://a.example/secret' };
    writeFileSync(file, JSON.stringify(config));
    const add = ['channels', 'add', 'n', '--type', 'slack'];
    await run([...add, '--config', file]);
    await run([...add, '--config', '-'], { input: JSON.stringify(config) });
    const typed = await run(add, { columns: 80, answers: [{ at: 'Webhook URL', type: `${config.webhook_url}\r` }] });
    expect(typed.stdout + typed.stderr).not.toContain(config.webhook_url);
    expect(sent).toMatchObject([{ config }, { config }, { config }]);
    writeFileSync(file, '[1]');
    expect(await run([...add, '--config', file])).toMatchObject({ status: 64 });
    writeFileSync(file, '{');
    expect(await run([...add, '--config', file])).toMatchObject({ status: 64 });
    expect(await run([...add, '--config', file, '--to', 'https://a.example'])).toMatchObject({ status: 64 });
  });

  it('to change what was given, with what is masked as it was shown', async () => {
    await run(['channels', 'update', 'phone', '--topic', 'other', '--token', '']);
    await run(['channels', 'update', 'team', '--name', 'all']);
    await run(['channels', 'update', 'team', '--events', 'rollout.*', '--events', 'drift.*']);
    await run(['channels', 'update', 'team', '--events', '', '--min-severity', 'info']);
    expect(sent).toEqual([
      { name: null, config: { topic: 'other', token: null, priority: 4 } },
      { name: 'all', config: null },
      { name: null, config: null, events: ['rollout.*', 'drift.*'] },
      { name: null, config: null, events: [], min_severity: 'info' },
    ]);
  });

  it('for programs, which get the bodies of the API', async () => {
    expect(JSON.parse((await run(['channels', '--json'])).stdout)).toEqual([ops, team, phone, chat]);
    expect((await run(['channels', '-o', 'name'])).stdout).toBe(`${[1, 2, 3, 4].map(ulid).join('\n')}\n`);
    expect(JSON.parse((await run(['channels', 'show', 'ops', '--json'])).stdout)).toEqual({ ...ops, deliveries });
    expect(JSON.parse((await run(['notifications', '--json'])).stdout).unread_count).toBe(2);
    expect((await run(['notifications', '-o', 'name'])).stdout).toBe(`${[10, 11, 12].map(ulid).join('\n')}\n`);
    await run(['notifications', '--unread', '--limit', '3']);
    expect(api.requests.at(-1)).toBe('GET /notifications?unread=true&limit=3');
  });

  it('as many as were asked for, page after page, or with a word about those that are left', async () => {
    const link = (path: string) => ({ link: `</api/v1${path}?limit=2&cursor=${ulid(11)}>; rel="next"` });
    const page = (...at: number[]) => ({ notifications: at.map((n) => notification(n)), unread_count: 0 });
    api.answer({
      listNotifications: ({ query }) =>
        query.cursor ? { body: page(2) } : { body: page(0, 1), headers: link('/notifications') },
      listDeliveries: { body: deliveries, headers: link(`/channels/${ops.id}/deliveries`) },
    });
    const more = 'More records exist: --limit N shows them.';
    const some = await run(['notifications', '-o', 'name']);
    expect(some).toMatchObject({ stdout: `${[10, 11].map(ulid).join('\n')}\n`, stderr: `${more}\n` });
    const all = await run(['notifications', '-o', 'name', '--limit', '900']);
    expect(all).toMatchObject({ stdout: `${[10, 11, 12].map(ulid).join('\n')}\n`, stderr: '' });
    expect(api.requests.slice(-2)).toEqual([
      'GET /notifications?limit=900',
      `GET /notifications?limit=898&cursor=${ulid(11)}`,
    ]);
    expect((await run(['channels', 'show', 'ops'])).stderr).toBe(`${more}\n`);
  });
});
