import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { insertEnrolmentToken, listEnrolmentTokens } from '../../daemon/fleet/enrolment-tokens.js';
import { operatorIdOf } from '../../src/identity/key-object.js';
import { proveRotation } from '../../src/identity/key-rotation.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { addOperator, audited, contextOf, emptyScene, logIn, scene } from '../support/auth.js';
import { rejection } from '../support/database.js';
import { newIdentity, SMALL_ORDER_KEYS } from '../support/identity.js';

describe('the first operator', () => {
  it('is an admin, made by the system, and audited', async () => {
    const s = await scene();
    expect(s.admin).toEqual({
      operator_id: operatorIdOf(s.alice.publicKey),
      username: 'alice',
      role: 'admin',
      bootstrap: true,
      added_at: toSeconds(s.clock.now()),
      added_by: 'system',
      removed_at: null,
      removed_by: null,
      public_key: s.alice.publicKey,
    });
    expect(await audited(s, 'operator.added')).toMatchObject([
      { actor_id: 'system', target_id: s.admin.operator_id, target_name: 'alice', summary: 'alice was added as admin' },
    ]);
  });

  it('is made only while there has never been one', async () => {
    const s = await scene();
    const second = { publicKey: newIdentity().publicKey, username: 'mallory' };
    expect(await s.operators.isEmpty()).toBe(false);
    expect(await s.operators.bootstrap(second, 'start')).toBeNull();
    // As after an intrusion that marked everybody as removed.
    await s.db.updateTable('operators').set({ removed_at: 1, removed_by: 'x' }).execute();
    expect(await s.operators.bootstrap(second, 'start')).toBeNull();
    expect(await s.operators.list(true)).toHaveLength(1);
  });

  it('may be given as a line of an OpenSSH file, but not with a weak key', async () => {
    const auth = await emptyScene();
    expect(await auth.operators.isEmpty()).toBe(true);
    const weak = auth.operators.bootstrap({ publicKey: SMALL_ORDER_KEYS[0] ?? '', username: 'alice' }, 'start');
    expect(await rejection(weak)).toMatchObject({ code: 'invalid_public_key' });
    const line = readFileSync(new URL('../identity/openssh/ed25519.pub', import.meta.url), 'utf8');
    expect(await auth.operators.bootstrap({ publicKey: line, username: 'alice' }, 'start')).toMatchObject({
      role: 'admin',
    });
  });
});

describe('adding an operator', () => {
  it('gives the role operator by default', async () => {
    const s = await scene();
    const { publicKey } = newIdentity();
    const added = await s.operators.add({ publicKey: publicKey.toUpperCase(), username: 'Zoë_1' }, s.context);
    expect(added).toMatchObject({
      operator_id: operatorIdOf(publicKey),
      public_key: publicKey,
      username: 'Zoë_1',
      role: 'operator',
      bootstrap: false,
      added_by: s.admin.operator_id,
    });
    expect(await s.operators.get(added.operator_id)).toEqual(added);
    expect((await s.operators.list()).map(({ username }) => username)).toEqual(['alice', 'Zoë_1']);
    const [, event] = await audited(s, 'operator.added');
    expect(event).toMatchObject({ actor_name: 'alice', target_name: 'Zoë_1' });
    expect(JSON.parse(event?.metadata_json ?? '')).toEqual({
      role: 'operator',
      public_key: publicKey,
      bootstrap: false,
      request_id: 'request-1',
    });
  });

  it.each(['', 'a b', '1a', '-a', 'a'.repeat(65), 'a\n', 'a/b', 'admin\u0000', '_x'])(
    'refuses the username %j',
    async (username) => {
      const s = await scene();
      const adding = s.operators.add({ publicKey: newIdentity().publicKey, username }, s.context);
      expect(await rejection(adding)).toMatchObject({
        code: 'invalid_username',
        hint: 'use 1 to 64 letters, digits, "-" and "_", starting with a letter',
      });
    },
  );

  it('refuses a role that there is not', async () => {
    const s = await scene();
    const adding = s.operators.add({ publicKey: newIdentity().publicKey, username: 'bob', role: 'root' }, s.context);
    expect(await rejection(adding)).toMatchObject({
      code: 'invalid_role',
      hint: 'choose one of admin, operator, deployer, planner, viewer',
    });
  });

  it('refuses a key or a name in use, however it is written', async () => {
    const s = await scene();
    const { publicKey } = newIdentity();
    await s.operators.add({ publicKey, username: 'Zoe\u0308' }, s.context);
    const sameKey = s.operators.add({ publicKey: publicKey.toUpperCase(), username: 'other' }, s.context);
    expect(await rejection(sameKey)).toMatchObject({
      code: 'operator_exists',
      message: 'the public key belongs to Zoë already',
    });
    const sameName = s.operators.add({ publicKey: newIdentity().publicKey, username: 'Zo\u00eb' }, s.context);
    expect(await rejection(sameName)).toMatchObject({
      code: 'operator_exists',
      message: 'there is an operator Zoë already',
    });
  });

  it('refuses a name that people take for one in use', async () => {
    const s = await scene();
    await s.operators.add({ publicKey: newIdentity().publicKey, username: 'zoe' }, s.context);
    // The third has a Cyrillic letter.
    for (const username of ['ZOE', 'z0e', 'z\u043ee']) {
      const added = s.operators.add({ publicKey: newIdentity().publicKey, username }, s.context);
      expect(await rejection(added)).toMatchObject({
        code: 'operator_exists',
        message: `the username ${JSON.stringify(username)} looks like that of the operator zoe`,
      });
    }
  });

  it('of the same name at the same time succeeds once', async () => {
    const s = await scene();
    const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => addOperator(s, 'bob')));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await s.operators.list()).toHaveLength(2);
  });
});

describe('removing an operator', () => {
  it('keeps the record, ends the sessions at once, and is audited', async () => {
    const s = await scene();
    const bob = await addOperator(s, 'bob');
    const tokens = [await logIn(s, bob), await logIn(s, bob)];
    const mine = await logIn(s, s.alice);
    await s.operators.remove(bob.operator.operator_id, s.context);
    for (const { token } of tokens) expect(await s.sessions.authenticate(token)).toBeNull();
    expect(await s.sessions.authenticate(mine.token)).not.toBeNull();
    expect(await s.db.selectFrom('sessions').selectAll().execute()).toHaveLength(1);
    expect(await s.operators.get(bob.operator.operator_id)).toMatchObject({
      removed_at: toSeconds(s.clock.now()),
      removed_by: s.admin.operator_id,
    });
    expect((await s.operators.list()).map(({ username }) => username)).toEqual(['alice']);
    expect((await s.operators.list(true)).map(({ username }) => username)).toEqual(['alice', 'bob']);
    const [event] = await audited(s, 'operator.removed');
    expect(event).toMatchObject({ actor_name: 'alice', target_name: 'bob', severity: 'warning' });
    expect(JSON.parse(event?.metadata_json ?? '')).toEqual({
      sessions: 2,
      enrolment_tokens: 0,
      request_id: 'request-1',
    });
  });

  it('ends the enrolment tokens of that operator for good, whatever the clock says at a return', async () => {
    const s = await scene();
    const bob = await addOperator(s, 'bob', 'admin');
    const now = s.clock.now();
    const token = {
      created_at: now,
      expires_at: now + 60_000,
      uses: 2,
      uses_left: 1,
      tags: {},
      auto_approve: 1,
    };
    for (const [token_id, created_by] of [
      ['hers', s.admin.operator_id],
      ['his', bob.operator.operator_id],
    ] as const) {
      await insertEnrolmentToken(s.db, { ...token, token_id, secret_hash: token_id, created_by });
    }
    await s.operators.remove(bob.operator.operator_id, s.context);
    s.clock.advance(-30_000);
    await s.operators.add({ publicKey: bob.publicKey, username: 'bob', role: 'admin' }, s.context);
    expect((await listEnrolmentTokens(s.db)).map(({ token_id }) => token_id)).toEqual(['hers']);
  });

  it('that is not there or gone already is refused', async () => {
    const s = await scene();
    const bob = await addOperator(s, 'bob');
    await s.operators.remove(bob.operator.operator_id, s.context);
    for (const id of [bob.operator.operator_id, 'nobody']) {
      expect(await rejection(s.operators.remove(id, s.context))).toMatchObject({ code: 'operator_not_found' });
    }
    expect(await rejection(s.operators.get('nobody'))).toMatchObject({
      code: 'operator_not_found',
      message: 'there is no operator nobody',
      hint: 'list them with: orch operator list',
    });
  });

  it('never removes the last admin, even when two admins remove each other at the same time', async () => {
    const s = await scene();
    expect(await rejection(s.operators.remove(s.admin.operator_id, s.context))).toMatchObject({
      code: 'last_admin',
      message: 'alice is the last admin',
      hint: 'add another admin first',
    });
    const bob = await addOperator(s, 'bob', 'admin');
    const outcomes = await Promise.allSettled([
      s.operators.remove(s.admin.operator_id, contextOf(bob.operator)),
      s.operators.remove(bob.operator.operator_id, s.context),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect((await s.operators.list()).map(({ username }) => username)).toEqual(['bob']);
  });

  it('leaves the name free, and gives the key its record back when it is added again', async () => {
    const s = await scene();
    const bob = await addOperator(s, 'bob', 'viewer');
    const id = bob.operator.operator_id;
    const { token } = await logIn(s, bob);
    await s.operators.remove(id, s.context);
    s.clock.advance(5000);
    await s.operators.add({ publicKey: bob.publicKey, username: 'robert' }, s.context);
    expect(await s.sessions.authenticate(token)).toBeNull();
    const revived = { operator_id: id, username: 'robert', role: 'operator', removed_at: null, removed_by: null };
    expect(await s.operators.get(id)).toMatchObject({ ...revived, added_at: toSeconds(s.clock.now()) });
    expect((await s.operators.list(true)).map(({ username }) => username)).toEqual(['alice', 'robert']);
    expect(await audited(s, 'operator.added')).toMatchObject([
      { summary: 'alice was added as admin' },
      { summary: 'bob was added as viewer' },
      {
        summary: 'robert was added again as operator, formerly bob',
        metadata_json: expect.stringContaining('"former_name":"bob","former_role":"viewer"'),
      },
    ]);
    await addOperator(s, 'bob');
    expect((await s.operators.list()).map(({ username }) => username)).toEqual(['alice', 'robert', 'bob']);
  });

  it('leaves no endless row of earlier keys by rotating', async () => {
    const s = await scene();
    let { identity, operator } = { identity: s.alice, operator: s.admin };
    const rotate = async () => {
      const next = newIdentity();
      const proof = proveRotation(identity.publicKey, next.privateKey);
      operator = await s.operators.rotateKey(operator, { publicKey: next.publicKey, proof }, contextOf(operator));
      identity = next;
    };
    for (let n = 0; n < 30; n += 1) await rotate();
    expect(await rejection(rotate())).toMatchObject({
      code: 'rate_limited',
      data: { retry_after: expect.any(Number) },
    });
    expect(await s.operators.list(true)).toHaveLength(31);
    s.clock.advance(60_000);
    await rotate();
  });

  it('keeps the grants with a new key, and none of before when a removed key is added again', async () => {
    const s = await scene();
    const identity = newIdentity();
    const grants = [{ rights: ['deployer'], selector: 'env=dev' }];
    const dora = await s.operators.add({ publicKey: identity.publicKey, username: 'dora', grants }, s.context);
    expect(dora.grants).toEqual(grants);
    const next = newIdentity();
    const proof = proveRotation(identity.publicKey, next.privateKey);
    const rotated = await s.operators.rotateKey(dora, { publicKey: next.publicKey, proof }, contextOf(dora));
    expect(rotated.grants).toEqual(grants);
    await s.operators.remove(rotated.operator_id, s.context);
    const again = await s.operators.add({ publicKey: next.publicKey, username: 'dora' }, s.context);
    expect(again.grants).toBeUndefined();
  });

  it('changes role and grants of an operator, whose sessions know at once', async () => {
    const s = await scene();
    const bob = await addOperator(s, 'bob');
    const { token } = await logIn(s, bob);
    const grants = [{ rights: ['planner'], selector: 'env=dev' }];
    const { operator_id } = bob.operator;
    await s.operators.setRights(operator_id, { role: 'deployer', grants }, s.context);
    const session = await s.sessions.authenticate(token);
    expect([session?.operator.role, session?.rights.has('apply'), session?.rights.has('plan')]).toEqual([
      'deployer',
      false,
      true,
    ]);
    expect(await audited(s, 'operator.rights_changed')).toMatchObject([
      { summary: 'alice changed what bob may do: deployer for planner on env=dev' },
    ]);
    await s.operators.setRights(operator_id, { role: 'deployer', grants }, s.context);
    expect(await audited(s, 'operator.rights_changed')).toHaveLength(1);
    const losing = s.operators.setRights(s.admin.operator_id, { role: 'viewer', grants: null }, s.context);
    expect(await rejection(losing)).toMatchObject({ code: 'last_admin' });
  });
});
