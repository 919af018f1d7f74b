import { describe, expect, it } from 'vitest';
import { completeIdempotencyKey, findIdempotencyKey } from '../../daemon/http/idempotency.js';
import { Fleet, OPERATOR, serveFleet } from '../support/fleet.js';
import { operator, type SendOptions, send } from '../support/http.js';

const PATH = '/api/v1/enrolment-tokens';

async function served() {
  const fleet = await Fleet.start();
  await fleet.addAdmin(operator('admin').operator_id);
  const kept: string[] = [];
  const api = await serveFleet(fleet, {
    hashKey: Buffer.alloc(32),
    find: (slot, validSince) => findIdempotencyKey(fleet.db, slot, validSince),
    complete: (slot, answer) => {
      kept.push(JSON.stringify(answer));
      return completeIdempotencyKey(fleet.db, slot, answer);
    },
  });
  const post = (body?: unknown, headers: SendOptions['headers'] = {}) =>
    send(api, 'POST', PATH, { token: 'admin', body, headers });
  return { fleet, api, post, kept };
}

describe('POST /enrolment-tokens', () => {
  it('gives the token, and what it is good for', async () => {
    const { post, fleet } = await served();
    const wanted = { ttl_secs: 60, uses: 3, tags: { role: 'web' }, auto_approve: true };
    const { status, json } = await post(wanted);
    expect(status).toBe(201);
    expect(json).toEqual({
      id: expect.stringMatching(/^[0-9A-Z]{26}$/),
      created_by: 'a'.repeat(32),
      created_at: 1_760_000_000,
      expires_at: 1_760_000_060,
      uses: 3,
      uses_left: 3,
      tags: { role: 'web' },
      auto_approve: true,
      last_used_at: null,
      token: expect.stringMatching(new RegExp(`^orch-enroll-v1\\.${json.id}\\.`)),
      agent_host: null,
      agent_port: 4747,
      reachable_host: '192.0.2.7',
      install: null,
    });
    const [event] = await fleet.events('enrolment.created');
    expect(JSON.stringify(event)).not.toContain(json.token.split('.')[2]);
    expect(event).toMatchObject({
      actor: { type: 'operator', name: 'admin' },
      target: { id: json.id, type: 'enrolment' },
      metadata: { uses: 3, tags: { role: 'web' }, auto_approve: true, request_id: expect.any(String) },
    });
  });

  it('shows the time of ephemeral agents', async () => {
    const { post, fleet } = await served();
    expect((await post({ ephemeral_secs: 300 })).json).toMatchObject({ ephemeral_secs: 300 });
    expect(await fleet.tokens.list(OPERATOR)).toMatchObject([{ ephemeral_secs: 300 }]);
    const [event] = await fleet.events('enrolment.created');
    expect(event?.metadata).toMatchObject({ ephemeral_secs: 300 });
  });

  it('lives an hour and lets one agent in by default', async () => {
    const { post } = await served();
    const standard = { expires_at: 1_760_003_600, uses: 1, tags: {}, auto_approve: false };
    expect((await post()).json).toMatchObject(standard);
    expect((await post({ ttl_secs: null, uses: null, tags: null, auto_approve: null })).json).toMatchObject(standard);
    expect((await post({ ttl_secs: 604_800, uses: 1000 })).status).toBe(201);
  });

  it.each([
    [{ ttl_secs: 604_801 }, 'invalid_body'],
    [{ ttl_secs: 0 }, 'invalid_body'],
    [{ uses: 1001 }, 'invalid_body'],
    [{ ephemeral_secs: 299 }, 'invalid_body'],
    [{ ephemeral_secs: 604_801 }, 'invalid_body'],
    [{ uses: 0 }, 'invalid_body'],
    [{ uses: 1.5 }, 'invalid_body'],
    [{ token: 'mine' }, 'invalid_body'],
    [{ tags: { 'a b': 'c' } }, 'invalid_tag'],
  ])('refuses %j', async (body, code) => {
    const { post, fleet } = await served();
    expect((await post(body)).json).toMatchObject({ status: 400, code });
    expect(await fleet.tokens.list(OPERATOR)).toEqual([]);
  });

  it('does not keep the token for a repeated Idempotency-Key, which does nothing', async () => {
    const { post, fleet, kept } = await served();
    const first = await post({ uses: 2 }, { 'idempotency-key': 'k' });
    expect(first.status).toBe(201);
    const again = await post({ uses: 2 }, { 'idempotency-key': 'k' });
    expect(again.json).toMatchObject({ status: 409, code: 'idempotency_conflict', reason: 'answer_secret' });
    expect(again.text).not.toContain('orch-enroll');
    expect(await fleet.tokens.list(OPERATOR)).toHaveLength(1);
    expect(kept).toEqual(['{"status":201,"body_json":null}']);
  });

  it('gives two requests that come at once with one key the one token', async () => {
    const { post, fleet } = await served();
    const both = await Promise.all([post({}, { 'idempotency-key': 'k' }), post({}, { 'idempotency-key': 'k' })]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([201, expect.any(Number)]);
    expect(await fleet.tokens.list(OPERATOR)).toHaveLength(1);
  });

  it('answers a refusal alike for a repeated Idempotency-Key', async () => {
    const { post } = await served();
    for (let count = 0; count < 2; count += 1) {
      const { json } = await post({ tags: { 'a b': '' } }, { 'idempotency-key': 'k' });
      expect(json).toMatchObject({ status: 400, code: 'invalid_tag' });
    }
  });
});

describe('enrolment tokens', () => {
  it('are listed without what makes them tokens', async () => {
    const { api, post } = await served();
    const { token, agent_host, agent_port, reachable_host, install, ...known } = (await post()).json;
    const list = await send(api, 'GET', PATH, { token: 'admin' });
    expect(list.json).toEqual([known]);
    expect([token, agent_host, agent_port, reachable_host, install]).not.toContain(undefined);
  });

  it('are revoked once', async () => {
    const { api, post, fleet } = await served();
    const { id } = (await post()).json;
    expect((await send(api, 'DELETE', `${PATH}/${id}`, { token: 'admin' })).status).toBe(204);
    expect(await fleet.tokens.list(OPERATOR)).toEqual([]);
    const again = await send(api, 'DELETE', `${PATH}/${id}`, { token: 'admin' });
    expect(again.json).toMatchObject({ status: 404, code: 'enrolment_token_not_found' });
    expect(await fleet.events('enrolment.revoked')).toMatchObject([{ target: { id }, actor: { name: 'admin' } }]);
  });

  it.each([
    ['GET', PATH],
    ['POST', PATH],
    ['DELETE', `${PATH}/x`],
  ])('are for admins alone: %s %s', async (method, path) => {
    const { api } = await served();
    expect((await send(api, method, path, { token: 'operator' })).json).toMatchObject({ code: 'admin_required' });
    expect((await send(api, method, path, { token: null })).status).toBe(401);
  });
});
