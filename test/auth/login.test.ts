import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { isBoundNonce, signNonce } from '../../src/identity/login-binding.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { addOperator, audited, HERE, HOUR, logIn, metadataOf, type Scene, scene } from '../support/auth.js';
import { rejection } from '../support/database.js';
import { newIdentity, SMALL_ORDER_KEYS, withTorsion } from '../support/identity.js';

const sign = (identity: Scene['alice'], nonce: string) => signNonce(identity.privateKey, Buffer.from(nonce, 'hex'));

describe('logging in', () => {
  it('gives a token for a signed nonce', async () => {
    const s = await scene();
    const nonce = await s.login.challenge(s.alice.publicKey, HERE);
    expect(nonce).toMatch(/^[0-9a-f]{64}$/);
    const { token, expiresAt } = await s.login.verify(s.alice.publicKey, sign(s.alice, nonce), HERE);
    expect(token).toMatch(/^orch_st_[A-Za-z0-9_-]{43}$/);
    expect(expiresAt).toBe(toSeconds(s.clock.now() + HOUR));
    expect(await s.sessions.authenticate(token)).toMatchObject({ operator: s.admin, expiresAt });
    expect(await audited(s, 'operator.login')).toMatchObject([{ actor_name: 'alice', target_name: 'alice' }]);
    expect(await metadataOf(s, 'operator.login')).toEqual([{ address: HERE.address, request_id: HERE.requestId }]);
  });

  it('takes keys and signatures in capitals', async () => {
    const s = await scene();
    const nonce = await s.login.challenge(s.alice.publicKey.toUpperCase(), HERE);
    const signature = sign(s.alice, nonce).toUpperCase();
    await s.login.verify(s.alice.publicKey.toUpperCase(), signature, HERE);
  });

  it('binds the nonce to the certificate that clients see', async () => {
    const spki = createHash('sha256').update('certificate').digest();
    const s = await scene({ serverSpki: () => spki });
    const nonce = Buffer.from(await s.login.challenge(s.alice.publicKey, HERE), 'hex');
    expect(isBoundNonce(nonce, s.alice.publicKey, spki)).toBe(true);
    expect(isBoundNonce(nonce, s.alice.publicKey, null)).toBe(false);
    const plain = await scene();
    const unbound = Buffer.from(await plain.login.challenge(plain.alice.publicKey, HERE), 'hex');
    expect(isBoundNonce(unbound, plain.alice.publicKey, null)).toBe(true);
  });

  it('goes on beside a hundred other logins with the same key', async () => {
    const s = await scene({ loginsPerMinute: 1, failedLoginsPerMinute: 1 });
    const nonces = await Promise.all(Array.from({ length: 100 }, () => s.login.challenge(s.alice.publicKey, HERE)));
    const tokens = await Promise.all(
      nonces.toReversed().map((nonce) => s.login.verify(s.alice.publicKey, sign(s.alice, nonce), HERE)),
    );
    expect(new Set(tokens.map(({ token }) => token)).size).toBe(100);
  });

  it('does not happen when it cannot be audited', async () => {
    const s = await scene();
    const nonce = await s.login.challenge(s.alice.publicKey, HERE);
    await s.db.schema.dropTable('audit_events').execute();
    await expect(s.login.verify(s.alice.publicKey, sign(s.alice, nonce), HERE)).rejects.toThrow();
    expect(await s.db.selectFrom('sessions').selectAll().execute()).toEqual([]);
  });
});

describe('a challenge', () => {
  it('is refused alike for a key that is unknown and one that was removed', async () => {
    const s = await scene();
    const bob = await addOperator(s, 'bob');
    await s.operators.remove(bob.operator.operator_id, s.context);
    const faults = [];
    for (const key of [newIdentity().publicKey, bob.publicKey])
      faults.push(await rejection(s.login.challenge(key, HERE)));
    for (const { code, message, hint } of faults) {
      expect([code, message, hint]).toEqual([
        'unknown_operator',
        'the public key belongs to no active operator',
        'ask an admin to run: orch operator add KEY --username NAME',
      ]);
    }
  });

  it.each([
    ['nothing', ''],
    ['too few digits', 'ab'.repeat(31)],
    ['too many digits', 'ab'.repeat(33)],
    ['no hex', 'zz'.repeat(32)],
    ['an OpenSSH line', 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOdGHJ4NFAOtBgwsLnQ7plIzQLmW3oM4MUXJ4sUdmVvw'],
    ['a key of small order', SMALL_ORDER_KEYS[0] ?? ''],
    ['a key with torsion', withTorsion(newIdentity().publicKey)],
  ])('is refused for %s as a public key', async (_what, key) => {
    const s = await scene();
    expect(await rejection(s.login.challenge(key, HERE))).toMatchObject({ code: 'invalid_public_key' });
    expect(await rejection(s.login.verify(key, 'ab'.repeat(64), HERE))).toMatchObject({ code: 'invalid_public_key' });
  });
});

describe('a verification', () => {
  it.each(['', 'ab', 'zz'.repeat(64), 'ab'.repeat(63), 'ab'.repeat(65)])(
    'is refused for %j as a signature',
    async (signature) => {
      const s = await scene();
      await s.login.challenge(s.alice.publicKey, HERE);
      expect(await rejection(s.login.verify(s.alice.publicKey, signature, HERE))).toMatchObject({
        code: 'invalid_signature',
        hint: 'send the 128 hex digits of a signature over the 32 raw bytes of the nonce',
      });
    },
  );

  const refusals: readonly (readonly [
    string,
    (s: Scene) => Promise<{ identity: Scene['alice']; signature: string }>,
  ])[] = [
    ['without a challenge', async ({ alice }) => ({ identity: alice, signature: sign(alice, '00'.repeat(32)) })],
    [
      'with the signature of another key',
      async ({ alice, login }) => {
        const nonce = await login.challenge(alice.publicKey, HERE);
        return { identity: alice, signature: sign(newIdentity(), nonce) };
      },
    ],
    [
      'with a signature of the hex text',
      async ({ alice, login }) => {
        const nonce = await login.challenge(alice.publicKey, HERE);
        return { identity: alice, signature: signNonce(alice.privateKey, Buffer.from(nonce).subarray(0, 32)) };
      },
    ],
    [
      'of a nonce that was used',
      async ({ alice, login }) => {
        const signature = sign(alice, await login.challenge(alice.publicKey, HERE));
        await login.verify(alice.publicKey, signature, HERE);
        return { identity: alice, signature };
      },
    ],
    [
      'of a nonce that has expired',
      async ({ alice, login, clock }) => {
        const signature = sign(alice, await login.challenge(alice.publicKey, HERE));
        clock.advance(60_000);
        return { identity: alice, signature };
      },
    ],
    [
      "of another operator's nonce",
      async (s) => {
        const bob = await addOperator(s, 'bob');
        await s.login.challenge(bob.publicKey, HERE);
        return { identity: bob, signature: sign(bob, await s.login.challenge(s.alice.publicKey, HERE)) };
      },
    ],
    [
      'of an operator who was removed after the challenge',
      async (s) => {
        const bob = await addOperator(s, 'bob');
        const signature = sign(bob, await s.login.challenge(bob.publicKey, HERE));
        await s.operators.remove(bob.operator.operator_id, s.context);
        return { identity: bob, signature };
      },
    ],
    [
      'of an unknown key',
      async () => {
        const stranger = newIdentity();
        return { identity: stranger, signature: sign(stranger, '00'.repeat(32)) };
      },
    ],
  ];

  it.each(refusals)('%s fails like all others', async (_what, prepare) => {
    const s = await scene();
    const { identity, signature } = await prepare(s);
    const sessions = await s.db.selectFrom('sessions').selectAll().execute();
    const fault = await rejection(s.login.verify(identity.publicKey, signature, HERE));
    expect([fault.code, fault.message]).toEqual([
      'signature_verification_failed',
      'the signature does not verify, or its nonce was used or has expired',
    ]);
    expect(await s.db.selectFrom('sessions').selectAll().execute()).toEqual(sessions);
  });

  it('of one nonce twice at the same time succeeds once', async () => {
    const s = await scene();
    const signature = sign(s.alice, await s.login.challenge(s.alice.publicKey, HERE));
    const outcomes = await Promise.allSettled(
      Array.from({ length: 5 }, () => s.login.verify(s.alice.publicKey, signature, HERE)),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});

describe('failed logins that are too many', () => {
  it('of one address are refused for a while, challenges and verifications counted together', async () => {
    const s = await scene({ loginsPerMinute: 3 });
    expect(await rejection(s.login.challenge(newIdentity().publicKey, HERE))).toMatchObject({
      code: 'unknown_operator',
    });
    expect(await rejection(s.login.challenge('junk', HERE))).toMatchObject({ code: 'invalid_public_key' });
    expect(await rejection(s.login.verify(s.alice.publicKey, 'junk', HERE))).toMatchObject({
      code: 'invalid_signature',
    });
    const limited = { code: 'rate_limited', data: { retry_after: 60 } };
    expect(await rejection(s.login.challenge(newIdentity().publicKey, HERE))).toMatchObject(limited);
    expect(await rejection(s.login.verify('junk', 'junk', HERE))).toMatchObject(limited);
    const elsewhere = { ...HERE, address: '192.0.2.8' };
    expect(await rejection(s.login.challenge('junk', elsewhere))).toMatchObject({ code: 'invalid_public_key' });
    s.clock.advance(60_000);
    expect(await rejection(s.login.challenge('junk', HERE))).toMatchObject({ code: 'invalid_public_key' });
  });

  it('are refused by key and address', async () => {
    const s = await scene({ failedLoginsPerMinute: 3 });
    const fail = (address = HERE.address) =>
      rejection(s.login.verify(s.alice.publicKey, 'ab'.repeat(64), { ...HERE, address }));
    for (let n = 0; n < 3; n += 1) expect(await fail()).toMatchObject({ code: 'signature_verification_failed' });
    expect(await fail()).toMatchObject({ code: 'rate_limited' });
    expect(await fail('192.0.2.8')).toMatchObject({ code: 'signature_verification_failed' });
    s.clock.advance(60_000);
    expect(await fail()).toMatchObject({ code: 'signature_verification_failed' });
  });

  it('come from one place when they come from one IPv6 network', async () => {
    const s = await scene({ failedLoginsPerMinute: 3 });
    const fail = (address: string) =>
      rejection(s.login.verify(s.alice.publicKey, 'ab'.repeat(64), { ...HERE, address }));
    for (let n = 0; n < 3; n += 1) await fail(`2001:db8:0:1::${n}`);
    expect(await fail('2001:db8:0:1:ffff::1')).toMatchObject({ code: 'rate_limited' });
    expect(await fail('2001:db8:0:2::1')).toMatchObject({ code: 'signature_verification_failed' });
  });

  it('keep no right signature out, whether with that key or from that address', async () => {
    const s = await scene({ loginsPerMinute: 3, failedLoginsPerMinute: 3 });
    const bob = await addOperator(s, 'bob');
    const nonce = await s.login.challenge(s.alice.publicKey, HERE);
    for (let n = 0; n < 200; n += 1) await s.login.challenge(s.alice.publicKey, HERE);
    for (let n = 0; n < 20; n += 1) await rejection(s.login.verify(s.alice.publicKey, 'ab'.repeat(64), HERE));
    expect(await rejection(s.login.challenge('junk', HERE))).toMatchObject({ code: 'rate_limited' });
    await s.login.verify(s.alice.publicKey, sign(s.alice, nonce), HERE);
    await logIn(s, s.alice);
    await logIn(s, bob);
  });

  it('are only compared with the newest challenges of their key, so that they cost little', async () => {
    const s = await scene({ loginsPerMinute: 3, failedLoginsPerMinute: 3 });
    const nonces: string[] = [];
    for (let n = 0; n < 6; n += 1) {
      nonces.push(await s.login.challenge(s.alice.publicKey, HERE));
      s.clock.advance(5_000);
    }
    const [oldest = '', second = '', third = ''] = nonces;
    await s.login.verify(s.alice.publicKey, sign(s.alice, oldest), HERE);
    for (let n = 0; n < 3; n += 1) await rejection(s.login.verify(s.alice.publicKey, 'ab'.repeat(64), HERE));
    expect(await rejection(s.login.verify(s.alice.publicKey, sign(s.alice, second), HERE))).toMatchObject({
      code: 'rate_limited',
    });
    await s.login.verify(s.alice.publicKey, sign(s.alice, third), HERE);
    const elsewhere = { ...HERE, address: '192.0.2.8' };
    await s.login.verify(s.alice.publicKey, sign(s.alice, second), elsewhere);
  });

  it('are refused before the work when they come at the same time', async () => {
    const s = await scene({ loginsPerMinute: 3 });
    const codes = await Promise.all(
      Array.from({ length: 20 }, async () => (await rejection(s.login.challenge(newIdentity().publicKey, HERE))).code),
    );
    expect(codes.filter((code) => code === 'unknown_operator')).toHaveLength(3);
    const weak = Array.from({ length: 20 }, () => s.login.verify(SMALL_ORDER_KEYS[0] ?? '', 'ab'.repeat(64), HERE));
    const refusals = await Promise.all(weak.map(async (attempt) => (await rejection(attempt)).code));
    expect(new Set(refusals)).toEqual(new Set(['rate_limited']));
  });

  it('at the same time do not slip through', async () => {
    const s = await scene({ failedLoginsPerMinute: 3 });
    const codes = await Promise.all(
      Array.from(
        { length: 10 },
        async () => (await rejection(s.login.verify(s.alice.publicKey, 'ab'.repeat(64), HERE))).code,
      ),
    );
    expect(codes.filter((code) => code === 'signature_verification_failed')).toHaveLength(3);
  });
});

describe('failed logins', () => {
  const fail = (s: Scene) => rejection(s.login.verify(s.alice.publicKey, randomBytes(64).toString('hex'), HERE));

  it('are audited once a minute and key, and counted', async () => {
    const s = await scene();
    for (let n = 0; n < 4; n += 1) await fail(s);
    expect(await metadataOf(s, 'operator.login_failed')).toEqual([
      { reason: 'signature_verification_failed', count: 1, address: HERE.address, request_id: HERE.requestId },
    ]);
    s.clock.advance(60_000);
    await fail(s);
    expect(await audited(s, 'operator.login_failed')).toMatchObject([
      { actor_name: 'alice', severity: 'warning', summary: 'alice failed to log in: signature_verification_failed' },
      { actor_name: 'alice', summary: 'alice failed to log in 4 times: signature_verification_failed' },
    ]);
  });

  it('that were held back are reported later, once', async () => {
    const s = await scene();
    for (let n = 0; n < 3; n += 1) await fail(s);
    const counts = async () => (await metadataOf(s, 'operator.login_failed')).map(({ count }) => count);
    await s.flush();
    expect(await counts()).toEqual([1]);
    s.clock.advance(60_000);
    await s.flush();
    await s.flush();
    expect(await counts()).toEqual([1, 2]);
    await fail(s);
    await s.flush(true);
    await s.flush(true);
    expect(await counts()).toEqual([1, 2, 1]);
  });

  it('of strangers and of the rate limit are counted together, whatever they made up', async () => {
    const s = await scene({ loginsPerMinute: 10 });
    for (let n = 0; n < 20; n += 1) await rejection(s.login.challenge(newIdentity().publicKey, HERE));
    await s.flush(true);
    const events = await metadataOf(s, 'operator.login_failed');
    expect(events.map(({ reason, count }) => [reason, count])).toEqual([
      ['unknown_operator', 1],
      ['rate_limited', 1],
      ['unknown_operator', 9],
      ['rate_limited', 9],
    ]);
  });

  it('stay failed logins when they cannot be audited, and are audited when they can', async () => {
    const s = await scene();
    await s.db.schema.alterTable('audit_events').renameTo('away').execute();
    expect(await fail(s)).toMatchObject({ code: 'signature_verification_failed' });
    expect(s.logger.lines).toMatchObject([{ level: 'warn', message: 'failed logins could not be audited yet' }]);
    await s.db.schema.alterTable('away').renameTo('audit_events').execute();
    await s.flush();
    expect(await audited(s, 'operator.login_failed')).toHaveLength(1);
  });
});
