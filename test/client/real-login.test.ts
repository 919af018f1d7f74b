import { ulid } from 'ulid';
import { describe, expect, it, onTestFinished } from 'vitest';
import { auditHandlers } from '../../daemon/audit/audit-routes.js';
import { authHandlers, authorize, operatorHandlers } from '../../daemon/auth/auth-routes.js';
import { createApiServer } from '../../daemon/http/api-server.js';
import type { Signer } from '../../src/client/login.js';
import { auditRoutes } from '../../src/contract/audit.js';
import { authRoutes } from '../../src/contract/auth.js';
import { operatorRoutes } from '../../src/contract/operators.js';
import { signNonce } from '../../src/identity/login-binding.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { auditOf, machinesOf } from '../support/audit.js';
import { addOperator, scene } from '../support/auth.js';
import { clientOf, faultOf, newSigner } from '../support/client.js';
import { authorizeOn, storedKeys, tlsFiles } from '../support/http.js';

type Identity = Pick<Awaited<ReturnType<typeof scene>>['alice'], 'privateKey' | 'publicKey'>;

const signerOf = ({ publicKey, privateKey }: Identity): Signer => ({
  publicKey,
  sign: async (nonce) => signNonce(privateKey, nonce),
});

/** The orchestrator's own rooms for logins, operators and audit behind the real server. */
async function start() {
  let fingerprint: string | null = null;
  const s = await scene({ serverSpki: () => Buffer.from(fingerprint ?? '', 'hex'), failedLoginsPerMinute: 2 });
  const api = createApiServer({
    contract: { ...authRoutes, ...operatorRoutes, ...auditRoutes },
    handlers: {
      ...authHandlers(s.auth),
      ...operatorHandlers({ ...s.auth, machines: machinesOf(s.store) }),
      ...auditHandlers({ ...auditOf(s.store), machines: machinesOf(s.store) }),
    },
    authenticate: (token) => s.sessions.authenticate(token),
    authorize,
    authorizeOn,
    idempotency: await storedKeys(),
    logger: silentLogger,
    clock: s.clock,
    newRequestId: () => ulid(),
    listen: { host: '127.0.0.1', port: 0 },
    tls: tlsFiles(),
    trustProxyTls: false,
    validateAnswers: true,
  });
  await api.start();
  onTestFinished(() => api.stop());
  fingerprint = api.fingerprint;
  const url = `https://127.0.0.1:${api.address().port}`;
  const client = (signer: Signer) => clientOf(url, { pin: fingerprint, signer: async () => signer });
  return { ...s, client };
}

describe('against the real logins', () => {
  it('an operator logs in with a nonce that is bound to the certificate', async () => {
    const s = await start();
    const alice = s.client(signerOf(s.alice));
    expect((await alice.call('getSession')).operator).toEqual(s.admin);
    const bob = newSigner();
    const added = await alice.callWithHeaders('addOperator', { body: { public_key: bob.publicKey, username: 'bob' } });
    expect([added.status, added.body.role]).toEqual([201, 'operator']);
    const asBob = s.client(bob);
    expect((await asBob.call('getSession')).operator.username).toBe('bob');
    const refused = await faultOf(asBob.call('addOperator', { body: { public_key: bob.publicKey, username: 'eve' } }));
    expect(refused.code).toBe('admin_required');
    await alice.call('removeOperator', { params: { operator_id: added.body.operator_id } });
    expect((await faultOf(asBob.call('listOperators'))).code).toBe('unknown_operator');
    const { events } = await alice.call('listAuditEvents', { query: { category: 'operator' } });
    expect(events.map(({ event_type }) => event_type)).toEqual(
      expect.arrayContaining(['operator.login', 'operator.removed']),
    );
    const removal = events.find(({ event_type }) => event_type === 'operator.removed');
    expect(removal?.actor).toMatchObject({ name: 'alice', type: 'operator' });
    expect(removal?.metadata.request_id).toBeTypeOf('string');
    await alice.logOut();
  });

  it('a session that has run out is made anew', async () => {
    const s = await start();
    const alice = s.client(signerOf(s.alice));
    const { expires_at } = await alice.call('getSession');
    s.clock.advance(2 * 3_600_000);
    expect((await alice.call('getSession')).expires_at).toBeGreaterThan(expires_at);
  });

  it('a wrong signature is refused, and after some the client has to wait', async () => {
    const s = await start();
    const { publicKey } = await addOperator(s, 'carol');
    const forger = s.client({ publicKey, sign: async (nonce) => signNonce(s.alice.privateKey, nonce) });
    for (let at = 0; at < 2; at += 1) {
      expect((await faultOf(forger.call('getSession'))).code).toBe('signature_verification_failed');
    }
    const limited = await faultOf(forger.call('getSession'));
    expect(limited.code).toBe('rate_limited');
    expect(Number(limited.data?.retry_after)).toBeGreaterThan(0);
  });
});
