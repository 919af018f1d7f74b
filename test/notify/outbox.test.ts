/** Deliveries to real servers that behave, and that do not. */
import { createHmac } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Channel, Delivery } from '../../src/contract/channels.js';
import { tlsFiles } from '../support/http.js';
import {
  ADA,
  apply,
  type NotifyBench,
  type NotifyBenchOptions,
  openNotify,
  startReceiver,
  status,
} from '../support/notify.js';
import { until } from '../support/orch.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

async function bench(options: NotifyBenchOptions = {}): Promise<NotifyBench> {
  const opened = await openNotify(options);
  onTestFinished(() => opened.close());
  return opened;
}

const states = (all: readonly Delivery[]) => all.map(({ state }) => state);
const every = (state: Delivery['state']) => (all: readonly Delivery[]) =>
  all.length > 0 && all.every((one) => one.state === state);
/** Waits until the channel is paused, and returns it. */
async function pausedOnce(notify: NotifyBench, id: string): Promise<Channel> {
  await until(async () => (await notify.channels.get(id, true)).body.paused_until !== null, 'the channel is paused');
  return (await notify.channels.get(id, true)).body;
}

const attempts = (count: number) => (all: readonly Delivery[]) => all[0]?.attempts === count;

describe('a delivery', () => {
  it('comes over TLS with the headers of Standard Webhooks, once', async () => {
    const tls = tlsFiles();
    const receiver = await startReceiver(tls);
    const notify = await bench({ network: { authorities: tls.cert } });
    const secret = Buffer.alloc(24, 7);
    const url = `https://localhost:${receiver.port}/hook?to=ops`;
    const { id } = await notify.channel('webhook', { url, secret: `whsec_${secret.toString('base64')}` });
    await notify.emit(apply());
    const [delivery] = await notify.deliveriesOnce(id, every('delivered'));
    expect(delivery).toMatchObject({
      state: 'delivered',
      attempts: 1,
      status_code: 200,
      error: null,
      next_attempt_at: null,
    });
    const [request] = receiver.requests;
    const { notifications } = await notify.inbox.list(ADA.actor.id, { unreadOnly: false, limit: 10 }, null);
    expect(request).toMatchObject({ method: 'POST', path: '/hook?to=ops' });
    const body = JSON.parse(request?.body ?? '');
    expect(body).toEqual({
      id: notifications[0]?.id,
      event_type: 'state.apply_failed',
      severity: 'warning',
      summary: 'the apply of module site on web-01 failed: 1 failed of 3',
      timestamp: '2026-03-01T12:00:00.000Z',
      actor: { id: 'system', name: 'orchestrator', type: 'system' },
      target: { id: 'b'.repeat(32), name: 'web-01', type: 'agent' },
      metadata: { operation_id: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T', summary: { failed: 1, total: 3 } },
    });
    const headers = request?.headers ?? {};
    expect(headers['webhook-id']).toBe(body.id);
    expect(headers['webhook-timestamp']).toBe(String(notify.clock.now() / 1000));
    expect(headers['content-type']).toBe('application/json');
    expect(headers.host).toBe(`localhost:${receiver.port}`);
    const signed = `${body.id}.${headers['webhook-timestamp']}.${request?.body}`;
    expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', secret).update(signed).digest('base64')}`);
    await notify.pass(24 * HOUR);
    expect(receiver.requests).toHaveLength(1);
  });

  it('is not signed without a secret, and its channel shows what came of it', async () => {
    const receiver = await startReceiver();
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    await notify.emit(apply());
    await notify.deliveriesOnce(id, every('delivered'));
    expect(receiver.requests[0]?.headers).not.toHaveProperty('webhook-signature');
    expect((await notify.channels.get(id, true)).body).toMatchObject({
      last_attempt: { delivered: true, status_code: 200, error: null, at: notify.clock.now() / 1000 },
    });
  });

  it('is refused by an untrusted certificate', async () => {
    const receiver = await startReceiver(tlsFiles());
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: `https://localhost:${receiver.port}/` });
    await notify.emit(apply());
    const [delivery] = await notify.deliveriesOnce(id, attempts(1));
    expect(delivery).toMatchObject({ state: 'pending', status_code: null });
    expect(delivery?.error).toMatch(/^the TLS connection to localhost failed: /);
    expect(receiver.requests).toEqual([]);
  });

  it('is tried seven times over hours with the same id, then given up and reported', async () => {
    const receiver = await startReceiver();
    const other = await startReceiver();
    receiver.answer(status(500));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url }, 'broken');
    const { id: otherId } = await notify.channel('webhook', { url: other.url }, 'fine');
    await notify.emit(apply());
    const pauses = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR];
    for (const [index, pause] of pauses.entries()) {
      const [failed] = await notify.deliveriesOnce(id, attempts(index + 1));
      expect(failed).toMatchObject({ state: 'pending', status_code: 500, error: 'the answer was 500' });
      await notify.pass(pause - 1);
      expect(receiver.requests).toHaveLength(index + 1);
      await notify.pass(1);
      await receiver.has(index + 2);
    }
    const [last] = await notify.deliveriesOnce(id, every('failed'));
    expect(last).toMatchObject({ attempts: 7, next_attempt_at: null, status_code: 500 });
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(notify.events.at(-1)).toMatchObject({ type: 'channel.delivery_failed', target: { name: 'broken' } });
    await notify.deliveriesOnce(otherId, (all) => all.length === 2 && every('delivered')(all));
    expect(JSON.parse(other.requests[1]?.body ?? '')).toMatchObject({
      event_type: 'channel.delivery_failed',
      summary: 'A notification could not be delivered to the channel broken in 7 attempts: the answer was 500',
    });
    expect(receiver.requests).toHaveLength(7);
  });

  it('that was put off while the clock was ahead is tried when the clock is right', async () => {
    const receiver = await startReceiver();
    receiver.answer(status(500));
    const notify = await bench();
    const right = notify.clock.now();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    notify.clock.setWall(right + 400 * 24 * HOUR);
    await notify.emit(apply());
    await notify.deliveriesOnce(id, attempts(1));
    receiver.answer(status(200));
    notify.clock.setWall(right);
    await notify.pass(0);
    expect(await notify.deliveriesOnce(id, every('delivered'))).toMatchObject([{ attempts: 2 }]);
  });

  it.each([
    ['429 and seconds', 429, { 'retry-after': '90' }, 90],
    ['503 and a date', 503, { 'retry-after': 'Sun, 01 Mar 2026 12:01:30 GMT' }, 90],
    ['502 and a fraction of seconds', 502, { 'retry-after': '2.5' }, 3],
    ['429 and no time', 429, {}, 60],
    ['429 and no readable time', 429, { 'retry-after': 'soon' }, 60],
    ['429 and no wait at all', 429, { 'retry-after': '0' }, 1],
    ['429 and hours', 429, { 'retry-after': '43323' }, 300],
  ])('pauses its channel after %s, which is no attempt', async (_what, code, headers, seconds) => {
    const receiver = await startReceiver();
    receiver.answer(status(code, headers));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    const begun = notify.clock.now();
    await notify.emit(apply());
    const end = Math.ceil(begun / 1000 + seconds);
    expect((await pausedOnce(notify, id)).paused_until).toBe(end);
    expect(await notify.channels.deliveries(id, { limit: 5 })).toMatchObject([
      { state: 'pending', attempts: 0, next_attempt_at: end },
    ]);
    await notify.emit(apply());
    receiver.answer(status(200));
    expect(receiver.requests).toHaveLength(1);
    await notify.pass(seconds * SECOND);
    await notify.deliveriesOnce(id, (all) => all.length === 2 && every('delivered')(all));
    expect(receiver.requests).toHaveLength(3);
    expect((await notify.channels.get(id, true)).body).toMatchObject({ paused_until: null });
  });

  it('comes in the order of the events to a receiver that takes one at a time', async () => {
    const receiver = await startReceiver();
    let takes = true;
    const taken: string[] = [];
    receiver.answer((response) => {
      const { body } = receiver.requests.at(-1) ?? { body: '{}' };
      if (takes) taken.push(JSON.parse(body).summary);
      status(takes ? 200 : 429, { 'retry-after': '1' })(response, undefined as never);
      takes = !takes;
    });
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    const summaries = Array.from({ length: 12 }, (_, index) => `apply ${index} failed`);
    for (const summary of summaries) {
      await notify.emit(apply({ summary }));
      await notify.pass(10);
    }
    for (let round = 0; round < 11; round += 1) {
      await until(async () => (await notify.channels.get(id, true)).body.paused_until !== null, 'it is paused');
      await notify.pass(SECOND);
    }
    await notify.deliveriesOnce(id, every('delivered'));
    expect(taken).toEqual(summaries);
    expect(receiver.most).toBe(1);
    expect(receiver.requests).toHaveLength(23);
  });

  it.each([
    ['in milliseconds', { 'retry-after': '43323' }, '', 44],
    ['by its own header', { 'retry-after': '43323', 'x-ratelimit-reset-after': '12.5' }, '', 13],
    [
      'in the body, in seconds',
      {},
      '{"message": "You are being rate limited.", "retry_after": 64.57, "global": false}',
      65,
    ],
    ['in the body, in milliseconds', {}, '{"retry_after": 2500}', 3],
  ])('waits for Discord as it asks %s', async (_what, headers, body, seconds) => {
    const receiver = await startReceiver();
    receiver.answer((response) => void response.writeHead(429, headers).end(body));
    const notify = await bench();
    const { id } = await notify.channel('discord', { webhook_url: `${receiver.url}/api/webhooks/1/abc` });
    const begun = notify.clock.now();
    await notify.emit(apply());
    expect((await pausedOnce(notify, id)).paused_until).toBe(Math.ceil(begun / 1000 + seconds));
  });

  it('goes out as soon as a test succeeds or the address changes, whatever pause was asked for', async () => {
    const [slow, quick] = [await startReceiver(), await startReceiver()];
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: slow.url });
    for (const end of ['test', 'address'] as const) {
      slow.answer(status(429, { 'retry-after': '9000' }));
      await notify.emit(apply());
      await pausedOnce(notify, id);
      slow.answer(status(200));
      if (end === 'test') await notify.tester.test(id, ADA, new AbortController().signal);
      else await notify.channels.update(id, { config: { url: quick.url } }, ADA);
      await notify.deliveriesOnce(id, every('delivered'));
      expect((await notify.channels.get(id, true)).body).toMatchObject({ paused_until: null });
    }
    expect(quick.requests).toHaveLength(1);
  });

  it('waits for the end of a pause across a restart, and not for one that a wrong clock has stored', async () => {
    const receiver = await startReceiver();
    receiver.answer(status(429, { 'retry-after': '90' }));
    const first = await openNotify();
    const { id } = await first.channel('webhook', { url: receiver.url });
    await first.emit(apply());
    await pausedOnce(first, id);
    await first.close();
    first.clock.advance(30 * SECOND);
    const second = await bench({ directory: first.directory, clock: first.clock });
    await second.pass(59 * SECOND);
    expect(receiver.requests).toHaveLength(1);
    await second.pass(SECOND);
    await receiver.has(2);
    await pausedOnce(second, id);
    receiver.answer(status(200));
    second.clock.setWall(second.clock.now() - 24 * HOUR);
    await second.pass(0);
    await second.deliveriesOnce(id, every('delivered'));
  });

  it('fails when pauses have held it back for a day, and other channels say so', async () => {
    const [receiver, other] = [await startReceiver(), await startReceiver()];
    receiver.answer(status(429));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url }, 'full');
    await notify.channel('webhook', { url: other.url }, 'fine');
    await notify.emit(apply());
    await pausedOnce(notify, id);
    await notify.pass(24 * HOUR + 1);
    await notify.deliveriesOnce(id, every('failed'));
    await other.has(2);
    expect(JSON.parse(other.requests[1]?.body ?? '')).toMatchObject({
      summary: 'A notification could not be delivered to the channel full within 24 hours: the answer was 429',
    });
  });

  it.each([
    ['an unasked 100 Continue', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 200],
    [
      'other interim answers',
      'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n',
      204,
    ],
    ['two equal lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok', 200],
    ['a list of equal lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok', 200],
    [
      'a length beside chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      200,
    ],
    ['20 KB of headers', `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(20_000)}\r\nContent-Length: 0\r\n\r\n`, 200],
    ['no reason', 'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n', 200],
    ['lines that end with LF', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n', 200],
    ['HTTP/1.0 and no length', 'HTTP/1.0 200 OK\r\n\r\nok', 200],
    ['letters that are not ASCII', 'HTTP/1.1 201 Cr\u00e9\u00e9\r\nX-M: \u00fc\r\nContent-Length: 0\r\n\r\n', 201],
  ])('counts as taken after an answer with %s', async (_what, answer, code) => {
    const receiver = await startReceiver();
    receiver.answer((_response, socket) => void socket.end(Buffer.from(answer, 'latin1')));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    await notify.emit(apply());
    expect(await notify.deliveriesOnce(id, (all) => all[0]?.attempts === 1)).toMatchObject([
      { state: 'delivered', status_code: code },
    ]);
  });

  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n', 'it is not an answer of HTTP/1.1'],
    ['half a head', 'HTTP/1.1 200 OK\r\nContent-', 'it was closed'],
    ['endless headers', `HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(20_000)}`, 'its headers are too long'],
    ['endless interim answers', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(4_000), 'its headers are too long'],
  ])('has failed after an answer with %s', async (_what, answer, problem) => {
    const receiver = await startReceiver();
    receiver.answer((_response, socket) => void socket.end(answer));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    await notify.emit(apply());
    expect(await notify.deliveriesOnce(id, attempts(1))).toMatchObject([
      { state: 'pending', status_code: null, error: `the connection ended before the answer: ${problem}` },
    ]);
  });

  it.each([
    ['a redirect is not followed', 302, 'the answer was 302, and redirects are not followed'],
    ['a refusal', 404, 'the answer was 404'],
  ])('%s', async (_what, code, error) => {
    const target = await startReceiver();
    const receiver = await startReceiver();
    receiver.answer(status(code, { location: `${target.url}/there` }));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    await notify.emit(apply());
    const [delivery] = await notify.deliveriesOnce(id, attempts(1));
    expect(delivery).toMatchObject({ state: 'pending', status_code: code, error });
    expect(target.requests).toEqual([]);
  });

  it('is over when the status has come, however the body goes on', async () => {
    const receiver = await startReceiver();
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    let sent = 0;
    receiver.answer((response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(16 * 1024, 65);
      const more = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
        sent += chunk.length;
      };
      response.on('drain', more);
      more();
    });
    await notify.emit(apply());
    await notify.deliveriesOnce(id, every('delivered'));
    await until(() => sent > 64 * 1024, 'the answer has gone on');
    const reached = sent;
    receiver.answer((response, socket) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('half', () => socket.destroy());
    });
    await notify.emit(apply());
    await notify.deliveriesOnce(id, (all) => all.length === 2 && every('delivered')(all));
    // The connection was closed on it; what the buffers of the system take is not much.
    expect(sent - reached).toBeLessThan(16 * 1024 * 1024);
  });

  it('has failed when the connection ends before the answer, and when nothing listens', async () => {
    const receiver = await startReceiver();
    receiver.answer((_response, socket) => socket.destroy());
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    await notify.emit(apply());
    const [cut] = await notify.deliveriesOnce(id, attempts(1));
    expect(cut?.error).toMatch(/^the connection ended before the answer: /);
    await receiver.stop();
    await notify.pass(5 * SECOND);
    const [gone] = await notify.deliveriesOnce(id, attempts(2));
    expect(gone?.error).toMatch(/^no connection: connect ECONNREFUSED /);
  });

  it('has failed when there is no answer in ten seconds', async () => {
    const receiver = await startReceiver();
    receiver.answer(() => undefined);
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    await notify.emit(apply());
    const [delivery] = await notify.deliveriesOnce(id, attempts(1));
    expect(delivery).toMatchObject({ status_code: null, error: 'there was no answer within 10 seconds' });
  });

  it('survives restarts between attempts, and is not sent again after a success', async () => {
    const receiver = await startReceiver();
    receiver.answer(status(500));
    const first = await openNotify();
    const { id } = await first.channel('webhook', { url: receiver.url });
    await first.emit(apply());
    await first.deliveriesOnce(id, attempts(1));
    await first.close();
    first.clock.advance(5 * SECOND);
    const second = await openNotify({ directory: first.directory, clock: first.clock });
    await second.deliveriesOnce(id, attempts(2));
    await second.close();
    receiver.answer(status(204));
    first.clock.advance(6 * MINUTE);
    const third = await openNotify({ directory: first.directory, clock: first.clock });
    const [done] = await third.deliveriesOnce(id, every('delivered'));
    expect(done).toMatchObject({ attempts: 3, status_code: 204 });
    await third.close();
    first.clock.advance(20 * HOUR);
    const fourth = await openNotify({ directory: first.directory, clock: first.clock });
    onTestFinished(() => fourth.close());
    await fourth.emit(apply());
    await fourth.deliveriesOnce(id, (all) => all.length === 2 && every('delivered')(all));
    expect(receiver.requests).toHaveLength(4);
    expect(new Set(receiver.requests.slice(0, 3).map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  });

  it('that is cut off by a stop is sent again with the same id', async () => {
    const receiver = await startReceiver();
    receiver.answer(() => undefined);
    const first = await openNotify();
    const { id } = await first.channel('webhook', { url: receiver.url });
    await first.emit(apply());
    await receiver.has(1);
    await first.close();
    receiver.answer(status(200));
    const second = await bench({ directory: first.directory, clock: first.clock });
    const [done] = await second.deliveriesOnce(id, every('delivered'));
    expect(done).toMatchObject({ attempts: 1 });
    const [one, two] = receiver.requests;
    expect(two?.body).toBe(one?.body);
  });
});

describe('a channel', () => {
  it('whose address is gone is disabled, told of once, and enabled by a new configuration', async () => {
    const receiver = await startReceiver();
    const other = await startReceiver();
    receiver.answer(status(410));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url }, 'old');
    const { id: otherId } = await notify.channel('webhook', { url: other.url }, 'fine');
    await notify.emit(apply());
    await notify.deliveriesOnce(id, every('failed'));
    expect((await notify.channels.get(id, true)).body).toMatchObject({ disabled_at: notify.clock.now() / 1000 });
    await notify.deliveriesOnce(otherId, (all) => all.length === 2 && every('delivered')(all));
    expect(other.requests.map(({ body }) => JSON.parse(body).summary)).toContain(
      'The channel old was disabled: its address is gone (410). Give it another one.',
    );
    await notify.emit(apply());
    await notify.deliveriesOnce(otherId, (all) => all.length === 3 && every('delivered')(all));
    expect(receiver.requests).toHaveLength(1);
    receiver.answer(status(200));
    const { body: changed } = await notify.channels.update(id, { config: { url: `${receiver.url}/new` } }, ADA);
    expect(changed.disabled_at).toBeNull();
    await notify.emit(apply());
    await notify.deliveriesOnce(id, (all) => all[0]?.state === 'delivered');
    expect(receiver.requests[1]?.path).toBe('/new');
  });

  it('that goes on failing is reported once, and two that fail do not report each other for ever', async () => {
    const notify = await bench();
    const [one, two] = [await startReceiver(), await startReceiver()];
    one.answer(status(500));
    two.answer(status(500));
    const first = await notify.channel('webhook', { url: one.url }, 'one');
    const second = await notify.channel('webhook', { url: two.url }, 'two');
    await notify.emit(apply(), apply({ type: 'drift.detected', summary: 'drift' }));
    const settled = async () => {
      const all = [
        ...(await notify.channels.deliveries(first.id, { limit: 500 })),
        ...(await notify.channels.deliveries(second.id, { limit: 500 })),
      ];
      return all.every(({ state }) => state === 'failed');
    };
    // The clock moves on until then: an attempt may be written down, and the next one be due, only after it has moved.
    await until(async () => {
      if (await settled()) return true;
      await notify.pass(10 * HOUR);
      return false;
    }, 'all deliveries are given up');
    const failures = notify.events.filter(({ type }) => type === 'channel.delivery_failed');
    expect(failures.length).toBeGreaterThanOrEqual(4);
    const { notifications } = await notify.inbox.list(ADA.actor.id, { unreadOnly: false, limit: 100 }, null);
    const told = notifications.filter(({ event_type }) => event_type === 'channel.delivery_failed');
    expect(told.length).toBeLessThanOrEqual(2);
    expect(one.requests.length + two.requests.length).toBeLessThanOrEqual(7 * 6);
  });

  it('is sent nothing during maintenance, and nothing of it afterwards', async () => {
    const receiver = await startReceiver();
    receiver.answer(status(500));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    await notify.emit(apply());
    await notify.deliveriesOnce(id, attempts(1));
    notify.maintenance(true);
    await notify.emit(apply());
    await notify.pass(5 * SECOND);
    const both = await notify.deliveriesOnce(id, every('suppressed'));
    expect(states(both)).toEqual(['suppressed', 'suppressed']);
    notify.maintenance(false);
    receiver.answer(status(200));
    await notify.emit(apply());
    const all = await notify.deliveriesOnce(id, (now) => now[0]?.state === 'delivered');
    expect(states(all)).toEqual(['delivered', 'suppressed', 'suppressed']);
    expect(receiver.requests).toHaveLength(2);
    const { notifications } = await notify.inbox.list(ADA.actor.id, { unreadOnly: false, limit: 10 }, null);
    expect(notifications).toHaveLength(3);
  });

  it('that is deleted is sent nothing more', async () => {
    const receiver = await startReceiver();
    receiver.answer(status(500));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    await notify.emit(apply());
    await notify.deliveriesOnce(id, attempts(1));
    await notify.channels.remove(id, ADA);
    await notify.pass(1 * HOUR);
    await notify.emit(apply());
    expect(receiver.requests).toHaveLength(1);
  });
});
