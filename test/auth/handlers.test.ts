import { describe, expect, it } from 'vitest';
import { auditHandlers } from '../../daemon/audit/audit-routes.js';
import { authHandlers, operatorHandlers } from '../../daemon/auth/auth-routes.js';
import type { Call, HandlersFor } from '../../daemon/http/handler.js';
import { auditRoutes } from '../../src/contract/audit.js';
import { authRoutes } from '../../src/contract/auth.js';
import { operatorRoutes } from '../../src/contract/operators.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { signNonce } from '../../src/identity/login-binding.js';
import { type Validator, validator } from '../../src/kernel/validator.js';
import { auditOf, machinesOf } from '../support/audit.js';
import { logIn, type Scene, scene } from '../support/auth.js';
import { rejection } from '../support/database.js';
import { newIdentity } from '../support/identity.js';

/** Calls handlers as the adapter does, and holds what they answer against the contract. */
async function api() {
  const s = await scene();
  const session = await logIn(s, s.alice);
  const services = {
    ...auditOf(s.store),
    machines: machinesOf(s.store),
    authenticate: (token: string) => s.sessions.authenticate(token),
  };
  return {
    ...s,
    session,
    auth: callerOf(authRoutes, authHandlers(s.auth), s, session.token),
    operators: callerOf(
      operatorRoutes,
      operatorHandlers({ ...s.auth, machines: machinesOf(s.store) }),
      s,
      session.token,
    ),
    audit: callerOf(auditRoutes, auditHandlers(services), s, session.token),
  };
}

type Input = { readonly params?: unknown; readonly query?: unknown; readonly body?: unknown };

function callerOf<Routes extends Readonly<Record<string, RouteSpec>>>(
  routes: Routes,
  handlers: HandlersFor<Routes>,
  s: Scene,
  token: string,
) {
  return async (id: keyof Routes, input: Input = {}) => {
    const route = routes[id] as Routes[typeof id];
    const own = { context: s.context, operator: s.admin, rights: s.context.rights, token };
    const call = { params: undefined, query: {}, ...input, ...own };
    const answer = await handlers[id]({
      ...call,
      signal: AbortSignal.timeout(5000),
      stream: null,
      events: null,
    } as unknown as Call<typeof route>);
    const { status, body } = answer as { readonly status: number; readonly body: unknown };
    const schema = route.answers[status];
    if (schema === undefined) throw new Error(`${route.id} answers ${status}, which is not in the contract`);
    if (schema === null) expect(body).toBeUndefined();
    else expect((validator(schema) as Validator<unknown>).problems(body)).toEqual([]);
    return { status, body: body as Readonly<Record<string, unknown>> };
  };
}

describe('the login routes', () => {
  it('challenge, verify, tell who it is, and log out', async () => {
    const { auth, alice, admin, sessions, session } = await api();
    const challenge = await auth('createChallenge', { body: { public_key: alice.publicKey } });
    const signature = signNonce(alice.privateKey, Buffer.from(String(challenge.body.nonce), 'hex'));
    const verified = await auth('verifyChallenge', { body: { public_key: alice.publicKey, signature } });
    expect(Object.keys(verified.body)).toEqual(['token', 'expires_at']);
    expect((await auth('getSession')).body).toEqual({ operator: admin, expires_at: session.expiresAt });
    expect((await auth('endSession')).status).toBe(204);
    expect(await sessions.authenticate(session.token)).toBeNull();
    expect(await rejection(auth('getSession'))).toMatchObject({ code: 'unauthenticated' });
  });
});

describe('the operator routes', () => {
  it('add, list, get and remove', async () => {
    const { operators, admin } = await api();
    const { publicKey } = newIdentity();
    const added = await operators('addOperator', { body: { public_key: publicKey, username: 'bob', role: null } });
    expect(added).toMatchObject({ status: 201, body: { username: 'bob', role: 'operator' } });
    expect((await operators('listOperators')).body).toEqual([admin, added.body]);
    const params = { operator_id: added.body.operator_id };
    expect((await operators('getOperator', { params })).body).toEqual(added.body);
    expect((await operators('removeOperator', { params })).status).toBe(204);
    expect((await operators('getOperator', { params })).body).toMatchObject({ removed_by: admin.operator_id });
    expect((await operators('listOperators', { query: { include_removed: null } })).body).toHaveLength(1);
    expect((await operators('listOperators', { query: { include_removed: true } })).body).toHaveLength(2);
  });

  it('take public keys in hex only', async () => {
    const { operators } = await api();
    const line = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOdGHJ4NFAOtBgwsLnQ7plIzQLmW3oM4MUXJ4sUdmVvw';
    expect(await rejection(operators('addOperator', { body: { public_key: line, username: 'bob' } }))).toMatchObject({
      code: 'invalid_public_key',
      message: 'public_key is not a public key in hex',
    });
  });
});

describe('the audit route', () => {
  it('shows pages with a cursor', async () => {
    const { audit } = await api();
    const first = await audit('listAuditEvents', { query: { limit: 1 } });
    expect(first.body).toMatchObject({ has_more: true, events: [{ event_type: 'operator.login' }] });
    const second = await audit('listAuditEvents', { query: { limit: 1, cursor: first.body.next_cursor } });
    expect(second.body).toMatchObject({
      has_more: false,
      next_cursor: null,
      events: [{ event_type: 'operator.added' }],
    });
    expect((await audit('listAuditEvents', { query: { limit: 100_000 } })).body.events).toHaveLength(2);
  });

  it('filters', async () => {
    const { audit, admin } = await api();
    const types = async (query: object) =>
      ((await audit('listAuditEvents', { query })).body.events as { event_type: string }[]).map(
        ({ event_type }) => event_type,
      );
    expect(await types({ operator: 'alice' })).toEqual(['operator.login', 'operator.added']);
    expect(await types({ operator: admin.operator_id, event_type: 'operator.added' })).toEqual(['operator.added']);
    expect(await types({ category: 'agent' })).toEqual([]);
    expect(await types({ after: '2026-03-01T12:00:00Z', before: null })).toHaveLength(2);
    expect(await types({ before: '2026-03-01T12:00:00.000Z' })).toEqual([]);
  });

  it.each([
    ['after', 'yesterday', 'after is no RFC 3339 timestamp'],
    ['before', '2026-02-30T00:00:00Z', 'before is no RFC 3339 timestamp'],
    ['before', '', 'before is empty'],
    ['agent', '', 'agent is empty'],
    ['operator', '', 'operator is empty'],
    ['event_type', '', 'event_type is empty'],
    ['event_type', 'nosuch', 'event_type names no type of event: "nosuch"'],
    ['category', 'nosuch', 'category begins no type of event: "nosuch"'],
    ['category', '', 'category is empty'],
  ])('refuses %s %j by name', async (parameter, value, message) => {
    const { audit } = await api();
    const fault = await rejection(audit('listAuditEvents', { query: { [parameter]: value } }));
    expect(fault).toMatchObject({ code: 'invalid_filter', message, data: { parameter } });
  });

  it.each(['', 'x', '01J0000000000000000000000U', '81J00000000000000000000000'])(
    'refuses the cursor %j',
    async (cursor) => {
      const { audit } = await api();
      expect(await rejection(audit('listAuditEvents', { query: { cursor } }))).toMatchObject({
        code: 'invalid_cursor',
        hint: 'send the next_cursor of the page before',
      });
    },
  );
});
