/** Deliveries to real servers that behave, and that do not. */
import { createHmac } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Delivery } from '../../src/contract/channels.js';
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
    const { notifications } = await notify.inbox.list(ADA.actor.id, { unreadOnly: false, limit: 10 });
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
    expect(await notify.channels.get(id)).toMatchObject({
      last_attempt: { delivered: true, status_code: 200, error: null, at: notify.clock.now() / 1000 },
    });
  });

  it('is refused by a certificate that nobody trusts', async () => {
    const receiver = await startReceiver(tlsFiles());
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: `https://localhost:${receiver.port}/` });
    await notify.emit(apply());
    const [delivery] = await notify.deliveriesOnce(id, attempts(1));
    expect(delivery).toMatchObject({ state: 'pending', status_code: null });
    expect(delivery?.error).toMatch(/^the TLS connection to localhost failed: /);
    expect(receiver.requests).toEqual([]);
  });

  it('is tried seven times over hours with the same id, then given up and told of', async () => {
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

  it('waits as long as the receiver asks, and holds back what else is for it', async () => {
    const receiver = await startReceiver();
    receiver.answer(status(429, { 'retry-after': '90' }));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    await notify.emit(apply());
    const [delivery] = await notify.deliveriesOnce(id, attempts(1));
    expect(delivery?.next_attempt_at).toBe(notify.clock.now() / 1000 + 90);
    await notify.emit(apply());
    await notify.pass(89 * SECOND);
    expect(receiver.requests).toHaveLength(1);
    receiver.answer(status(200));
    await notify.pass(1 * SECOND);
    await notify.deliveriesOnce(id, every('delivered'));
    expect(receiver.requests).toHaveLength(3);
  });

  it('does not wait for what another address has asked for', async () => {
    const [slow, quick] = [await startReceiver(), await startReceiver()];
    slow.answer(status(429, { 'retry-after': '9000' }));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: slow.url });
    await notify.emit(apply());
    await notify.deliveriesOnce(id, attempts(1));
    await notify.channels.update(id, { config: { url: quick.url } }, ADA);
    await notify.deliveriesOnce(id, every('delivered'));
    expect(quick.requests).toHaveLength(1);
  });

  it('waits ten hours at the longest, and takes a date too', async () => {
    const receiver = await startReceiver();
    const notify = await bench();
    receiver.answer(status(503, { 'retry-after': '999999' }));
    const { id } = await notify.channel('webhook', { url: receiver.url });
    await notify.emit(apply());
    const [long] = await notify.deliveriesOnce(id, attempts(1));
    expect(long?.next_attempt_at).toBe(notify.clock.now() / 1000 + 36_000);
    const date = new Date(notify.clock.now() + 10 * HOUR + 20 * MINUTE).toUTCString();
    receiver.answer(status(503, { 'retry-after': date }));
    await notify.pass(10 * HOUR);
    const [dated] = await notify.deliveriesOnce(id, attempts(2));
    expect(dated?.next_attempt_at).toBe(notify.clock.now() / 1000 + 20 * 60);
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

  it('has failed when the connection ends before the answer, and when nobody listens', async () => {
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

  it('goes out two at a time for each channel', async () => {
    const receiver = await startReceiver();
    const waiting: (() => void)[] = [];
    receiver.answer((response) => waiting.push(() => response.end()));
    const notify = await bench();
    const { id } = await notify.channel('webhook', { url: receiver.url });
    await notify.emit(...Array.from({ length: 7 }, () => apply()));
    for (let answered = 0; answered < 7; answered += 1) {
      await until(() => waiting.length === Math.min(2, 7 - answered), 'two requests wait, or the last one');
      waiting.shift()?.();
    }
    await notify.deliveriesOnce(id, every('delivered'));
    expect(receiver.requests).toHaveLength(7);
    expect(receiver.most).toBe(2);
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
    expect(await notify.channels.get(id)).toMatchObject({ disabled_at: notify.clock.now() / 1000 });
    await notify.deliveriesOnce(otherId, (all) => all.length === 2 && every('delivered')(all));
    expect(other.requests.map(({ body }) => JSON.parse(body).summary)).toContain(
      'The channel old was disabled: its address is gone (410). Give it another one.',
    );
    await notify.emit(apply());
    await notify.deliveriesOnce(otherId, (all) => all.length === 3 && every('delivered')(all));
    expect(receiver.requests).toHaveLength(1);
    receiver.answer(status(200));
    const changed = await notify.channels.update(id, { config: { url: `${receiver.url}/new` } }, ADA);
    expect(changed.disabled_at).toBeNull();
    await notify.emit(apply());
    await notify.deliveriesOnce(id, (all) => all[0]?.state === 'delivered');
    expect(receiver.requests[1]?.path).toBe('/new');
  });

  it('that goes on failing is told of once, and two that fail do not tell of each other for ever', async () => {
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
    const { notifications } = await notify.inbox.list(ADA.actor.id, { unreadOnly: false, limit: 100 });
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
    const { notifications } = await notify.inbox.list(ADA.actor.id, { unreadOnly: false, limit: 10 });
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
