import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { ulid } from 'ulid';
import { describe, expect, it, onTestFinished } from 'vitest';
import { auditHandlers } from '../../daemon/audit/audit-routes.js';
import { authorize } from '../../daemon/auth/auth-routes.js';
import { createApiServer } from '../../daemon/http/api-server.js';
import type { HttpLimits } from '../../daemon/http/http-limits.js';
import { readServerSentEvents } from '../../src/client/streamed-body.js';
import { auditRoutes } from '../../src/contract/audit.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { auditOf, event, machinesOf } from '../support/audit.js';
import { addOperator, HOUR, logIn, scene } from '../support/auth.js';
import { noKeys, send } from '../support/http.js';
import { until } from '../support/until.js';

/** The audit log behind the real server, with an admin, an operator and a viewer. */
async function start(limits: Partial<HttpLimits> = {}) {
  const s = await scene();
  const audit = auditOf(s.store, { clock: s.clock, retentionDays: () => 90 });
  const viewer = await addOperator(s, 'vera', 'viewer');
  const operator = await addOperator(s, 'olaf');
  const authenticate = (token: string) => s.sessions.authenticate(token);
  const api = createApiServer({
    contract: auditRoutes,
    handlers: auditHandlers({ ...audit, machines: machinesOf(s.store) }),
    authenticate,
    authorize,
    authorizeOn: async () => undefined,
    idempotency: noKeys,
    logger: silentLogger,
    clock: s.clock,
    newRequestId: () => ulid(),
    listen: { host: '127.0.0.1', port: 0 },
    tls: null,
    limits,
    trustProxyTls: false,
    validateAnswers: true,
  });
  await api.start();
  await audit.feed.start();
  onTestFinished(async () => {
    await audit.feed.stop();
    await api.stop();
  });
  const tokens = {
    admin: (await logIn(s, s.alice)).token,
    operator: (await logIn(s, operator)).token,
    viewer: (await logIn(s, viewer)).token,
  };
  const call = (method: string, path: string, token: string, body?: unknown) =>
    send(api, method, `/api/v1${path}`, { token, ...(body === undefined ? {} : { body }) });
  /** A stream as it comes: the answer, and what is read of it so far. */
  const open = async (path: string, { token = tokens.viewer, lastId = '' } = {}) => {
    const client = request({
      port: api.address().port,
      path: `/api/v1${path}`,
      agent: false,
      headers: { authorization: `Bearer ${token}`, ...(lastId ? { 'last-event-id': lastId } : {}) },
    });
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      client.on('response', resolve).on('error', reject).end();
    });
    onTestFinished(() => void client.destroy());
    return { answer, events: readServerSentEvents(answer)[Symbol.asyncIterator](), leave: () => client.destroy() };
  };
  return { ...s, ...audit, api, call, open, tokens, viewer };
}

/** True while a process has the end of a connection with these ports open (proc(5), `/proc/net/tcp`). */
function isHeld(own: number, other: number | undefined): boolean {
  const written = (port: number | undefined) => (port ?? 0).toString(16).toUpperCase().padStart(4, '0');
  const connection = new RegExp(`^ *\\d+: \\w+:${written(own)} \\w+:${written(other)} 01 `, 'm');
  return connection.test(readFileSync('/proc/net/tcp', 'latin1'));
}

type Stream = Awaited<ReturnType<Awaited<ReturnType<typeof start>>['open']>>;

/** The summaries of the next events. */
async function next({ events }: Stream, count: number): Promise<readonly string[]> {
  const summaries: string[] = [];
  while (summaries.length < count) {
    const { value, done } = await events.next();
    if (done) throw new Error(`the stream ended after ${summaries.join(', ')}`);
    if (value.data !== null) summaries.push(JSON.parse(value.data).summary);
  }
  return summaries;
}

/** The problem that a stream ends with. */
async function lastOf({ events }: Stream) {
  let last: unknown;
  for (let round = 0; round < 1000; round += 1) {
    const { value, done } = await events.next();
    if (done) return last;
    if (value.type === 'error') last = JSON.parse(value.data ?? '');
  }
  return last;
}

const tell = (audit: Pick<Awaited<ReturnType<typeof start>>, 'emit'>, ...summaries: readonly string[]) =>
  audit.emit(...summaries.map((summary) => event({ summary })));

describe('the administration of the audit log', () => {
  it('is for admins, and what it tells is for everybody', async () => {
    const { call, tokens } = await start();
    for (const token of [tokens.viewer, tokens.operator]) {
      expect((await call('DELETE', '/audit?before=2020-01-01', token)).json).toMatchObject({ code: 'admin_required' });
      const put = await call('PUT', '/audit/retention', token, { retention_days: 5 });
      expect([put.status, put.json.code]).toEqual([403, 'admin_required']);
      expect((await call('GET', '/audit/retention', token)).json).toEqual({ retention_days: 90 });
      expect((await call('GET', '/audit/verify', token)).json).toMatchObject({ intact: true });
    }
  });

  it('prunes by time and refuses what is none', async () => {
    const { call, tokens, clock } = await start();
    clock.advance(1000);
    const before = new Date(clock.now()).toISOString();
    const { status, json } = await call('DELETE', `/audit?before=${before}`, tokens.admin);
    expect([status, json]).toEqual([200, { deleted: 6 }]);
    const listed = await call('GET', '/audit', tokens.admin);
    expect(listed.json.events).toMatchObject([{ event_type: 'audit.pruned', actor: { name: 'alice' } }]);
    const wrong = await call('DELETE', '/audit?before=yesterday', tokens.admin);
    expect([wrong.status, wrong.json.code]).toEqual([400, 'invalid_cutoff']);
    expect((await call('DELETE', '/audit', tokens.admin)).json).toMatchObject({ status: 400, code: 'invalid_query' });
  });

  it('sets how long events are kept', async () => {
    const { call, tokens } = await start();
    for (const retention_days of [365, 1, null]) {
      const put = await call('PUT', '/audit/retention', tokens.admin, { retention_days });
      expect([put.status, put.json]).toEqual([200, { retention_days }]);
      expect((await call('GET', '/audit/retention', tokens.admin)).json).toEqual({ retention_days });
    }
    for (const body of [{ retention_days: 0 }, { retention_days: -1 }, { retention_days: 1.5 }, {}]) {
      const refused = await call('PUT', '/audit/retention', tokens.admin, body);
      expect([refused.status, refused.json.code]).toEqual([400, 'invalid_body']);
    }
  });

  it('verifies against a checkpoint that it gave', async () => {
    const { call, tokens } = await start();
    const { checkpoint } = (await call('GET', '/audit/verify', tokens.viewer)).json;
    const again = await call('GET', `/audit/verify?since=${checkpoint.text}`, tokens.viewer);
    expect(again.json).toMatchObject({ intact: true, since: { seq: checkpoint.seq, found: 'confirmed' } });
    const wrong = await call('GET', '/audit/verify?since=checkpoint', tokens.viewer);
    expect([wrong.status, wrong.json.code]).toEqual([400, 'invalid_checkpoint']);
  });
});

describe('GET /events', () => {
  it('answers at once, and with events as they are written', async () => {
    const s = await start();
    const stream = await s.open('/events');
    expect(stream.answer.statusCode).toBe(200);
    expect(stream.answer.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    expect(stream.answer.headers['cache-control']).toBe('no-store');
    expect(stream.answer.headers['x-request-id']).toBeDefined();
    const { value } = await stream.events.next();
    expect(value).toMatchObject({ data: null, id: expect.stringMatching(/^[0-9A-Z]{26}$/) });
    await tell(s, 'one', 'zwei\nü');
    expect(await next(stream, 2)).toEqual(['one', 'zwei\nü']);
  });

  it('goes on behind the last event that a client has got', async () => {
    const s = await start();
    await tell(s, 'one', 'two', 'three');
    const { events } = (await s.call('GET', '/audit?limit=3', s.tokens.viewer)).json;
    const stream = await s.open('/events', { lastId: events[2].id });
    await tell(s, 'four');
    expect(await next(stream, 3)).toEqual(['two', 'three', 'four']);
    const wrong = await s.open('/events', { lastId: 'x' });
    expect(wrong.answer.statusCode).toBe(400);
    const head = await s.call('HEAD', '/events', s.tokens.viewer);
    expect([head.status, head.text]).toEqual([200, '']);
  });

  it('tells a client that resumes behind a deleted event of the gap', async () => {
    const s = await start();
    await tell(s, 'one', 'two');
    const [, one] = (await s.call('GET', '/audit?limit=2', s.tokens.viewer)).json.events;
    s.clock.advance(1000);
    await tell(s, 'three');
    const before = new Date(s.clock.now()).toISOString();
    await s.call('DELETE', `/audit?before=${before}`, s.tokens.admin);
    const stream = await s.open('/events', { lastId: one.id });
    const { value } = await stream.events.next();
    expect(value).toMatchObject({ type: 'gap', id: '' });
    expect(JSON.parse(value.data)).toMatchObject({ after: one.id, deleted: null, detail: expect.any(String) });
    expect((await next(stream, 1))[0]).toBe('three');
  });

  it('takes the filters of the audit log, and a time to begin at', async () => {
    const s = await start();
    const stream = await s.open('/events?after=2000-01-01&operator=alice&category=operator.');
    expect(await next(stream, 2)).toEqual(['alice was added as admin', 'vera was added as viewer']);
    for (const query of ['after=x', 'category=', 'before=2020-01-01']) {
      expect((await s.open(`/events?${query}`)).answer.statusCode, query).toBe(400);
    }
  });

  it('ends with its session though nothing happens', async () => {
    const s = await start({ heartbeatMs: 3_600_000 });
    const quiet = await s.open('/events?category=agent');
    await s.operators.remove(s.viewer.operator.operator_id, s.context);
    expect(await lastOf(quiet)).toMatchObject({ status: 401, code: 'unauthenticated' });
  });

  it('needs a session, and ends within seconds when it does', async () => {
    const s = await start();
    expect((await s.open('/events', { token: 'nobody' })).answer.statusCode).toBe(401);
    const [removed, expired] = [await s.open('/events'), await s.open('/events', { token: s.tokens.admin })];
    await s.operators.remove(s.viewer.operator.operator_id, s.context);
    expect(await lastOf(removed)).toMatchObject({ status: 401, code: 'unauthenticated' });
    s.clock.advance(HOUR + 1);
    expect(await lastOf(expired)).toMatchObject({ status: 401, code: 'unauthenticated' });
  });

  it('tells now and then that it lives, and how far it has come', async () => {
    const s = await start({ heartbeatMs: 0 });
    const stream = await s.open('/events?category=agent');
    const { value: first } = await stream.events.next();
    await tell(s, 'of no interest here');
    const { value: second } = await stream.events.next();
    expect(second).toMatchObject({ data: null });
    expect(second.id > first.id).toBe(true);
  });

  it('cuts a reader off that takes nothing, who can go on where it was', async () => {
    const s = await start({ stallMs: 200 });
    const stream = await s.open('/events');
    stream.answer.pause();
    const isServed = () => isHeld(s.api.address().port, stream.answer.socket.localPort);
    expect(isServed()).toBe(true);
    const long = 'x'.repeat(4000);
    let written = 0;
    // More than what the sockets of both ends hold.
    for (; written < 6000; written += 500) {
      await s.emit(...Array.from({ length: 500 }, (_, n) => event({ summary: `${written + n} ${long}` })));
    }
    await until(() => !isServed(), 'the server has closed the connection');
    const got: string[] = [];
    let lastId = '';
    try {
      for (;;) {
        const { value, done } = await stream.events.next();
        if (done) break;
        lastId = value.id;
        if (value.data !== null) got.push(JSON.parse(value.data).summary.split(' ')[0]);
      }
    } catch (error) {
      expect(String(error)).toMatch(/aborted|ECONNRESET/);
    }
    expect(got.length).toBeLessThan(written);
    const rest = await s.open('/events', { lastId });
    got.push(...(await next(rest, written - got.length)).map((summary) => summary.split(' ')[0] ?? ''));
    expect(got).toEqual(Array.from({ length: written }, (_, n) => String(n)));
  });

  it('ends when the orchestrator stops', async () => {
    const s = await start();
    const stream = await s.open('/events');
    await s.feed.stop();
    expect(await lastOf(stream)).toMatchObject({ status: 503, code: 'shutting_down' });
  });
});
