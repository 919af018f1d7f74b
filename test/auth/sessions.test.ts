import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { AdminRecovery } from '../../daemon/auth/admin-recovery.js';
import { createAuth } from '../../daemon/auth/auth.js';
import { audited, contextOf, HERE, HOUR, logIn, metadataOf, type Scene, scene } from '../support/auth.js';
import { gated, rejection } from '../support/database.js';
import { drawn } from '../support/exhaustive.js';
import { newIdentity } from '../support/identity.js';
import { itOnSqlite } from '../support/store.js';
import { refuseWrites } from '../support/store-lab.js';
import { until } from '../support/until.js';

/** Waits until all writes before it have happened. */
const settle = ({ core }: Scene) => core.uow.write(async () => undefined);

describe('a session', () => {
  it('ends when its time is over', async () => {
    const s = await scene();
    const { token } = await logIn(s, s.alice);
    s.clock.advance(HOUR - 1);
    expect(await s.sessions.authenticate(token)).not.toBeNull();
    s.clock.advance(1);
    expect(await s.sessions.authenticate(token)).toBeNull();
  });

  it('of a clock that was ahead ends when the clock is right, and is dropped', async () => {
    const s = await scene();
    const right = s.clock.now();
    const { token: before } = await logIn(s, s.alice);
    s.clock.setWall(right + 400 * 24 * HOUR);
    const { token } = await logIn(s, s.alice);
    expect(await s.sessions.authenticate(token)).not.toBeNull();
    s.clock.setWall(right);
    expect(await s.sessions.authenticate(token)).toBeNull();
    expect(await s.sessions.authenticate(before)).not.toBeNull();
    expect(await s.sessions.prune()).toBe(1);
    // A correction by a little ends no login.
    s.clock.setWall(right - 60_000);
    expect(await s.sessions.authenticate(before)).not.toBeNull();
  });

  it('lives as long as the setting says at the login', async () => {
    let lifetime = 1000;
    const s = await scene({ sessionLifetimeMs: () => lifetime });
    const short = await logIn(s, s.alice);
    lifetime = 5000;
    const long = await logIn(s, s.alice);
    s.clock.advance(2000);
    expect(await s.sessions.authenticate(short.token)).toBeNull();
    expect(await s.sessions.authenticate(long.token)).not.toBeNull();
  });

  it('ends by logging out, once', async () => {
    const s = await scene();
    const [mine, other] = [await logIn(s, s.alice), await logIn(s, s.alice)];
    await s.sessions.revoke(mine.token, s.context);
    expect(await s.sessions.authenticate(mine.token)).toBeNull();
    expect(await s.sessions.authenticate(other.token)).not.toBeNull();
    expect(await rejection(s.sessions.revoke(mine.token, s.context))).toMatchObject({ code: 'unauthenticated' });
    expect(await audited(s, 'operator.logout')).toMatchObject([{ actor_name: 'alice', summary: 'alice logged out' }]);
  });

  it('leaves few events when an operator logs in and out all the time, and none is left out', async () => {
    const s = await scene();
    for (let n = 0; n < 40; n += 1) {
      const { token } = await logIn(s, s.alice);
      await s.sessions.revoke(token, s.context);
      expect(await s.sessions.authenticate(token)).toBeNull();
    }
    const counts = async (type: 'operator.login' | 'operator.logout') =>
      (await metadataOf(s, type)).map(({ count = 1 }) => count);
    expect(await counts('operator.login')).toEqual(Array(10).fill(1));
    s.clock.advance(60_000);
    await s.flush();
    await s.flush();
    for (const type of ['operator.login', 'operator.logout'] as const) {
      expect(await counts(type)).toEqual([...Array(10).fill(1), 30]);
    }
    expect((await audited(s, 'operator.login')).at(-1)).toMatchObject({ summary: 'alice logged in 30 more times' });
    await logIn(s, s.alice);
    expect(await counts('operator.login')).toHaveLength(12);
  });

  it('of another network always has an event of its own, so that a new address is reported', async () => {
    const s = await scene();
    for (let n = 0; n < 20; n += 1) await logIn(s, s.alice);
    await logIn(s, s.alice, { ...HERE, address: '198.51.100.9' });
    expect((await metadataOf(s, 'operator.login')).at(-1)).toMatchObject({ address: '198.51.100.9' });
  });

  it('ends the oldest of an operator who has a thousand', async () => {
    const s = await scene();
    const first = await logIn(s, s.alice);
    s.clock.advance(1);
    const second = await logIn(s, s.alice);
    s.clock.advance(1);
    for (let n = 0; n < 999; n += 1) await logIn(s, s.alice);
    expect(await s.sessions.authenticate(first.token)).toBeNull();
    expect(await s.sessions.authenticate(second.token)).not.toBeNull();
  });

  it('is for its exact token alone', async () => {
    const s = await scene();
    const { token } = await logIn(s, s.alice);
    const changed = token.slice(0, -2) + (token.at(-2) === 'A' ? 'B' : 'A') + token.at(-1);
    for (const other of [
      '',
      'x',
      changed,
      `${token}A`,
      token.slice(0, -1),
      token.toUpperCase(),
      ` ${token}`,
      token.slice(8),
    ]) {
      expect([other, await s.sessions.authenticate(other)]).toEqual([other, null]);
    }
  });

  itOnSqlite('is not to be had from the file of the store', async () => {
    const s = await scene();
    const { token } = await logIn(s, s.alice);
    const { rows } = await sql<{ file: string }>`pragma database_list`.execute(s.db);
    const file = rows[0]?.file ?? '';
    for (const path of [file, `${file}-wal`]) {
      const content = readFileSync(path);
      expect(content.includes(token)).toBe(false);
      expect(content.includes(token.slice(8))).toBe(false);
    }
    expect(await s.db.selectFrom('sessions').selectAll().execute()).toMatchObject([
      { token_hash: expect.stringMatching(/^[0-9a-f]{64}$/), address: '192.0.2.7' },
    ]);
  });

  it('keeps the time of its last use to the minute', async () => {
    const s = await scene();
    const { token } = await logIn(s, s.alice);
    const start = s.clock.now();
    const lastUse = async () => {
      await Promise.all([s.sessions.authenticate(token), s.sessions.authenticate(token)]);
      await settle(s);
      return (await s.db.selectFrom('sessions').select('last_used_at').executeTakeFirstOrThrow()).last_used_at - start;
    };
    s.clock.advance(59_999);
    expect(await lastUse()).toBe(0);
    s.clock.advance(1);
    expect(await lastUse()).toBe(60_000);
    s.clock.advance(30_000);
    expect(await lastUse()).toBe(60_000);
  });

  it('is good while its last use cannot be stored', async () => {
    const s = await scene();
    const { token } = await logIn(s, s.alice);
    await refuseWrites(s.db, { table: 'sessions', kind: 'update', message: 'read only' });
    s.clock.advance(60_000);
    expect(await s.sessions.authenticate(token)).not.toBeNull();
    await until(() => s.logger.lines.length > 0, 'the failed write is logged');
    expect(s.logger.lines).toMatchObject([{ level: 'warn', message: 'the last use of a session was not stored' }]);
  });

  it('leaves nothing behind once it has expired and was tidied away', async () => {
    const s = await scene();
    await logIn(s, s.alice);
    s.clock.advance(HOUR / 2);
    const { token } = await logIn(s, s.alice);
    s.clock.advance(HOUR / 2);
    expect(await s.sessions.prune()).toBe(1);
    expect(await s.sessions.prune()).toBe(0);
    expect(await s.sessions.authenticate(token)).not.toBeNull();
  });
});

describe('a session that is kept between requests', () => {
  it('stays ended, whatever was read before its end and arrived after it', async () => {
    const s = await scene();
    const { token } = await logIn(s, s.alice);
    const gate = gated(s.db);
    const { sessions } = createAuth({ ...s.core, db: gate.db }, { serverSpki: () => null });
    const early = sessions.authenticate(token);
    await gate.read;
    await s.sessions.revoke(token, s.context);
    gate.open();
    expect(await early).not.toBeNull();
    expect(await sessions.authenticate(token)).toBeNull();
  });

  it('is what the store says, after any sequence of changes (property)', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(CHANGES.length - 1), { minLength: 1, maxLength: 14 }), async (numbers) => {
        const s = await scene();
        const bob = newIdentity();
        const run: Run = { s, bob, tokens: [(await logIn(s, s.alice)).token] };
        for (const number of numbers) {
          await CHANGES[number]?.(run);
          const { sessions } = createAuth(s.core, { serverSpki: () => null });
          for (const token of run.tokens) {
            expect(await s.sessions.authenticate(token)).toEqual(await sessions.authenticate(token));
          }
        }
        await s.store.close();
      }),
      { numRuns: drawn(12) },
    );
  });
});

interface Run {
  readonly s: Scene;
  /** An operator who comes and goes. */
  readonly bob: ReturnType<typeof newIdentity>;
  readonly tokens: string[];
}

const idOfBob = async ({ s, bob }: Run) =>
  (await s.operators.list()).find(({ public_key }) => public_key === bob.publicKey)?.operator_id ?? '';

const ignoreRefusal = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    () => undefined,
  );

const CHANGES: readonly ((run: Run) => Promise<unknown>)[] = [
  async ({ s, tokens }) => tokens.push((await logIn(s, s.alice)).token),
  ({ s, bob, tokens }) => ignoreRefusal(logIn(s, bob).then(({ token }) => tokens.push(token))),
  ({ s, bob }) => ignoreRefusal(s.operators.add({ publicKey: bob.publicKey, username: 'bob' }, s.context)),
  ({ s, bob }) =>
    ignoreRefusal(s.operators.add({ publicKey: bob.publicKey, username: 'rob', role: 'viewer' }, s.context)),
  async (run) => ignoreRefusal(run.s.operators.remove(await idOfBob(run), run.s.context)),
  ({ s, bob }) => ignoreRefusal(new AdminRecovery(s.core).recover({ publicKey: bob.publicKey, username: null }, 'r')),
  ({ s, tokens }) => ignoreRefusal(s.sessions.revoke(tokens.at(-1) ?? '', contextOf(s.admin))),
  async ({ s }) => s.clock.advance(HOUR / 3),
  async ({ s }) => s.clock.setWall(s.clock.now() - HOUR / 4),
  ({ s }) => s.sessions.prune(),
];
