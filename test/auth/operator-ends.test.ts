/** Operators with an end, and robots. */
import { describe, expect, it } from 'vitest';
import { tellEnds } from '../../daemon/auth/operator-ends.js';
import { rightsAt } from '../../daemon/auth/operator-store.js';
import { insertEnrolmentToken, listEnrolmentTokens } from '../../daemon/fleet/enrolment-tokens.js';
import { isBackedByMaker } from '../../daemon/fleet/token-rights.js';
import { proveRotation } from '../../src/identity/key-rotation.js';
import { signNonce } from '../../src/identity/login-binding.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { audited, contextOf, HERE, HOUR, logIn, type Scene, scene } from '../support/auth.js';
import { rejection } from '../support/database.js';
import { newIdentity } from '../support/identity.js';

const DAY = 24 * HOUR;

/** Adds an operator whose end comes after `ms`. */
async function addEnding(s: Scene, username: string, ms: number, more: object = {}) {
  const identity = newIdentity();
  const expiresAt = toSeconds(s.clock.now() + ms);
  const given = { publicKey: identity.publicKey, username, expiresAt, ...more };
  return { ...identity, operator: await s.operators.add(given, s.context) };
}

describe('an operator with an end', () => {
  it('does nothing from then on, with open sessions neither, until an admin gives more time', async () => {
    const s = await scene();
    const bob = await addEnding(s, 'bob', HOUR / 2);
    const { token, expiresAt } = await logIn(s, bob);
    expect(expiresAt).toBe(bob.operator.expires_at);
    s.clock.advance(HOUR / 2 - 1);
    expect((await s.sessions.authenticate(token))?.expiresAt).toBe(expiresAt);
    const { operator_id } = bob.operator;
    expect((await s.operators.rightsOf(operator_id))?.has('apply')).toBe(true);
    s.clock.advance(1);
    expect(await s.sessions.authenticate(token)).toBeNull();
    expect(await s.operators.rightsOf(operator_id)).toBeNull();
    expect((await rightsAt(s.db, operator_id, s.clock.now())).has('read')).toBe(false);
    const nonce = await s.login.challenge(bob.publicKey, HERE);
    const signature = signNonce(bob.privateKey, Buffer.from(nonce, 'hex'));
    expect(await rejection(s.login.verify(bob.publicKey, signature, HERE))).toMatchObject({
      code: 'operator_expired',
      hint: 'ask an admin to run: orch operator grant bob --expires 90d',
    });
    expect(await audited(s, 'operator.login_failed')).toMatchObject([
      { actor_name: 'bob', summary: 'bob failed to log in: operator_expired' },
    ]);
    // The role changes without a new end, which gives no time back.
    const { role, expires_at } = await s.operators.setRights(operator_id, { grants: null, role: 'planner' }, s.context);
    expect([role, expires_at]).toEqual(['planner', bob.operator.expires_at]);
    expect(await s.operators.rightsOf(operator_id)).toBeNull();
    const over = { grants: null, expiresAt: (expires_at ?? 0) - 1 };
    expect(await rejection(s.operators.setRights(operator_id, over, s.context))).toMatchObject({
      code: 'invalid_expiry',
    });
    const later = { grants: null, expiresAt: toSeconds(s.clock.now() + DAY) };
    await s.operators.setRights(operator_id, later, s.context);
    await logIn(s, bob);
    expect((await s.sessions.authenticate(token))?.operator.expires_at).toBe(later.expiresAt);
  });

  it('tells a stranger nothing of it', async () => {
    const s = await scene();
    const bob = await addEnding(s, 'bob', HOUR);
    s.clock.advance(HOUR);
    await s.login.challenge(bob.publicKey, HERE);
    const wrong = s.login.verify(bob.publicKey, 'ab'.repeat(64), HERE);
    expect(await rejection(wrong)).toMatchObject({ code: 'signature_verification_failed' });
  });

  it('keeps the end with a new key', async () => {
    const s = await scene();
    const bob = await addEnding(s, 'bob', DAY, { isRobot: true });
    const next = newIdentity();
    const proof = proveRotation(bob.publicKey, next.privateKey);
    const renewed = await s.operators.rotateKey(
      bob.operator,
      { publicKey: next.publicKey, proof },
      contextOf(bob.operator),
    );
    expect(renewed).toMatchObject({ robot: true, expires_at: bob.operator.expires_at });
  });

  it('is told of a week before, and when it is over, once each', async () => {
    const s = await scene();
    await addEnding(s, 'bob', 30 * DAY);
    await addEnding(s, 'eve', DAY);
    const told = async () => {
      await tellEnds(s.core);
      const events = [...(await audited(s, 'operator.expiring')), ...(await audited(s, 'operator.expired'))];
      return events.map(({ summary }) => summary);
    };
    expect(await told()).toEqual([]);
    s.clock.advance(DAY);
    expect(await told()).toEqual(['the time of eve is over']);
    s.clock.advance(22 * DAY);
    const soon = expect.stringMatching(/^the time of bob ends at 20/);
    expect(await told()).toEqual([soon, 'the time of eve is over']);
    expect(await told()).toHaveLength(2);
    s.clock.advance(7 * DAY);
    expect(await told()).toEqual([soon, 'the time of eve is over', 'the time of bob is over']);
    expect(await told()).toHaveLength(3);
  });

  it('is told of again when a wrong clock had taken it for over, and ends the tokens of its operator', async () => {
    const s = await scene();
    const bob = await addEnding(s, 'bob', DAY);
    const overs = async () => {
      await tellEnds(s.core);
      return (await audited(s, 'operator.expired')).length;
    };
    s.clock.advance(2 * DAY);
    expect(await overs()).toBe(1);
    s.clock.setWall(s.clock.now() - 2 * DAY);
    expect(await overs()).toBe(1);
    const token = { tags: {}, created_by: bob.operator.operator_id, uses: 1, uses_left: 1, auto_approve: 0 };
    const times = { created_at: 1, expires_at: 9e15, last_used_at: null, revoked_at: null, ephemeral_secs: null };
    await insertEnrolmentToken(s.db, { token_id: 'token', secret_hash: 'hash', ...token, ...times });
    s.clock.advance(DAY);
    expect(await overs()).toBe(2);
    expect(await listEnrolmentTokens(s.db)).toEqual([]);
  });

  it('gives nobody what would outlast it', async () => {
    const s = await scene();
    const { operator: guest } = await addEnding(s, 'guest', DAY, { role: 'admin' });
    const { operator: bob } = await addEnding(s, 'bob', DAY);
    const as = contextOf(guest);
    const end = guest.expires_at ?? 0;
    const add = (expiresAt: number | null) =>
      s.operators.add({ publicKey: newIdentity().publicKey, username: 'friend', expiresAt }, as);
    for (const expiresAt of [null, end + 1]) {
      expect(await rejection(add(expiresAt))).toMatchObject({ code: 'expiry_beyond_own', data: { expires_at: end } });
    }
    expect(await add(end)).toMatchObject({ username: 'friend', expires_at: end });
    const set = (id: string, given: object) => s.operators.setRights(id, { grants: null, ...given }, as);
    const longer = set(bob.operator_id, { expiresAt: null });
    expect(await rejection(longer)).toMatchObject({ code: 'expiry_beyond_own' });
    expect(await rejection(set(guest.operator_id, { expiresAt: end + 60 }))).toMatchObject({
      code: 'expiry_beyond_own',
    });
    const carol = await s.operators.add({ publicKey: newIdentity().publicKey, username: 'carol' }, s.context);
    const raised = set(carol.operator_id, { role: 'admin' });
    expect(await rejection(raised)).toMatchObject({ code: 'expiry_beyond_own' });
  });

  it('lets no machine in with a token made before', async () => {
    const s = await scene();
    const { operator } = await addEnding(s, 'guest', HOUR, { role: 'admin' });
    const token = { created_by: operator.operator_id, tags: {}, auto_approve: 0 };
    const isBacked = () => isBackedByMaker(s.db, token, s.clock.now());
    expect(await isBacked()).toBe(true);
    s.clock.advance(HOUR);
    expect(await isBacked()).toBe(false);
  });

  it('is not the last admin, who gets none', async () => {
    const s = await scene();
    await addEnding(s, 'guest', DAY, { role: 'admin' });
    const { operator_id } = s.admin;
    expect(await rejection(s.operators.remove(operator_id, s.context))).toMatchObject({ code: 'last_admin' });
    const ending = { grants: null, expiresAt: toSeconds(s.clock.now() + DAY) };
    expect(await rejection(s.operators.setRights(operator_id, ending, s.context))).toMatchObject({
      code: 'last_admin',
    });
  });

  it('is not added when the end is over', async () => {
    const s = await scene();
    expect(await rejection(addEnding(s, 'bob', 0))).toMatchObject({ code: 'invalid_expiry' });
  });
});

describe('a robot', () => {
  it('has an end within a year, is no admin, and gets no terminal', async () => {
    const s = await scene();
    const robot = (ms: number, more: object = {}) => addEnding(s, 'ci', ms, { isRobot: true, ...more });
    expect(await rejection(robot(HOUR, { expiresAt: null }))).toMatchObject({ code: 'invalid_expiry' });
    expect(await rejection(robot(367 * DAY))).toMatchObject({ code: 'invalid_expiry' });
    expect(await rejection(robot(DAY, { role: 'admin' }))).toMatchObject({ code: 'invalid_role' });
    const { operator } = await robot(DAY);
    const set = (given: object) => s.operators.setRights(operator.operator_id, { grants: null, ...given }, s.context);
    expect(await rejection(set({ role: 'admin' }))).toMatchObject({ code: 'invalid_role' });
    expect(await rejection(set({ expiresAt: null }))).toMatchObject({ code: 'invalid_expiry' });
    const held = await s.operators.rightsOf(operator.operator_id);
    expect(['terminal', 'watch', 'take-pen', 'exec', 'apply'].map((right) => held?.has(right as never))).toEqual([
      ...[false, false, false],
      ...[true, true],
    ]);
    await set({ grants: [{ rights: ['operator', 'terminal'], selector: '*' }] });
    const granted = await s.operators.rightsOf(operator.operator_id);
    expect([granted?.has('terminal'), granted?.has('exec')]).toEqual([false, true]);
  });

  it('shows when it was used last; a person does not', async () => {
    const s = await scene();
    const ci = await addEnding(s, 'ci', DAY, { isRobot: true });
    const ada = await addEnding(s, 'ada', DAY);
    expect(ci.operator.last_used_at).toBeNull();
    const { token } = await logIn(s, ci);
    await logIn(s, ada);
    const shown = async (id: string) => (await s.operators.get(id)).last_used_at;
    const first = toSeconds(s.clock.now());
    expect(await shown(ci.operator.operator_id)).toBe(first);
    expect(await shown(ada.operator.operator_id)).toBeUndefined();
    s.clock.advance(60_000);
    await s.sessions.authenticate(token);
    await expect.poll(() => shown(ci.operator.operator_id)).toBe(first + 60);
  });
});
