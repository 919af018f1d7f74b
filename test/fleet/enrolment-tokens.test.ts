import { describe, expect, it } from 'vitest';
import { markOperatorRemoved } from '../../daemon/auth/operator-store.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import type { CreatedEnrolmentToken, NewEnrolmentToken } from '../../src/contract/enrolment-tokens.js';
import { parseEnrolmentToken } from '../../src/wire/enrolment-token.js';
import { Fleet, type FleetOptions, OPERATOR, type TestAgent } from '../support/fleet.js';
import { newIdentity } from '../support/identity.js';

const HOUR = 60 * 60 * 1000;

async function start(options: FleetOptions = {}): Promise<Fleet> {
  const fleet = await Fleet.start(options);
  await fleet.addAdmin(OPERATOR.actor.id);
  return fleet;
}

const make = (fleet: Fleet, wanted: NewEnrolmentToken = {}): Promise<CreatedEnrolmentToken> =>
  fleet.tokens.create(OPERATOR, wanted);

const come = (fleet: Fleet, { token }: { readonly token: string }, hostname = 'box'): Promise<TestAgent> =>
  fleet.join(undefined, { hostname, enrolment_token: token });

/** Messages that an agent got, in order, up to its status or its end. */
async function answers(agent: TestAgent): Promise<readonly unknown[]> {
  await Promise.race([agent.message(1), agent.closed]);
  const close = agent.received.length < 2 ? await agent.closed : null;
  const told = agent.received.map((message) => {
    if (message.type === 'token_verdict') return message.verdict;
    return message.type === 'status' ? [message.status, message.name] : message.type;
  });
  return close === null ? told : [...told, close.code];
}

const usesLeft = async (fleet: Fleet): Promise<readonly number[]> =>
  (await fleet.tokens.list(OPERATOR)).map((token) => token.uses_left);

describe('an agent with a token', () => {
  it('waits for approval, with the tags of the token', async () => {
    const fleet = await start();
    const token = await make(fleet, { tags: { role: 'web', site: 'north' } });
    const agent = await come(fleet, token);
    expect(await answers(agent)).toEqual(['accepted', ['pending', null]]);
    expect(await fleet.agents.get(agent.nodeId)).toMatchObject({
      status: 'pending',
      name: null,
      tags: { role: 'web', site: 'north' },
    });
    expect(await fleet.story()).toEqual(['enrolment.created', 'agent.pending', 'enrolment.used', 'agent.tags_changed']);
    expect(await fleet.events('enrolment.used')).toMatchObject([
      {
        actor: { id: agent.nodeId, type: 'agent' },
        target: { id: agent.nodeId, type: 'agent' },
        metadata: { token_id: token.id, address: '127.0.0.1', auto_approve: false, uses_left: 0 },
      },
    ]);
  });

  it('is approved at once where an admin has said so, under its host name', async () => {
    const fleet = await start();
    const token = await make(fleet, { auto_approve: true, tags: { role: 'web' } });
    const agent = await come(fleet, token, 'web-01.example.org');
    expect(await answers(agent)).toEqual(['accepted', ['approved', 'web-01']]);
    expect(await fleet.agents.get(agent.nodeId)).toMatchObject({
      status: 'approved',
      name: 'web-01',
      connected: true,
      tags: { role: 'web' },
    });
    expect(await fleet.story()).toEqual([
      'enrolment.created',
      'enrolment.used',
      'agent.approved',
      'agent.tags_changed',
      'agent.connected',
    ]);
    expect(await fleet.events('agent.approved')).toMatchObject([
      {
        actor: { type: 'system' },
        target: { id: agent.nodeId, name: 'web-01' },
        metadata: { token_id: token.id, created_by: OPERATOR.actor.id, public_key: agent.identity.publicKey },
      },
    ]);
    expect(await usesLeft(fleet)).toEqual([0]);
  });

  it('that comes again keeps what it has, and costs no further use', async () => {
    const fleet = await start();
    const token = await make(fleet, { uses: 2 });
    const agent = await come(fleet, token);
    await fleet.gone(agent);
    fleet.clock.advance(2 * HOUR - 1);
    await fleet.tokens.revoke(OPERATOR, token.id);
    const again = await fleet.join(agent.identity, { enrolment_token: token.token });
    expect(await answers(again)).toEqual(['accepted', ['pending', null]]);
    await fleet.approve(agent.nodeId, 'web');
    await fleet.gone(again);
    const third = await fleet.join(agent.identity, { enrolment_token: token.token });
    expect(third.received).toMatchObject([{ type: 'status', status: 'approved' }]);
    expect(await fleet.events('enrolment.used')).toHaveLength(1);
  });

  it('that waits already is approved with it', async () => {
    const fleet = await start();
    const agent = await fleet.join();
    await fleet.tags.set(OPERATOR, agent.nodeId, { key: 'site', value: 'south' });
    await fleet.gone(agent);
    const token = await make(fleet, { auto_approve: true, tags: { role: 'db' } });
    const again = await fleet.join(agent.identity, { hostname: 'db', enrolment_token: token.token });
    expect(await answers(again)).toEqual(['accepted', ['approved', 'db']]);
    expect((await fleet.agents.get(agent.nodeId)).tags).toEqual({ role: 'db', site: 'south' });
  });

  it('is not let in when an operator has rejected it, and the token stays whole', async () => {
    const fleet = await start();
    const agent = await fleet.join();
    await fleet.reject(agent.nodeId);
    await agent.closed;
    const token = await make(fleet, { auto_approve: true });
    const again = await fleet.join(agent.identity, { enrolment_token: token.token });
    expect((await again.closed).code).toBe(4403);
    expect(again.received).toEqual([]);
    expect(await usesLeft(fleet)).toEqual([1]);
  });

  it('that an operator has removed starts pending and empty, whatever its token says', async () => {
    const fleet = await start();
    const agent = await fleet.approved('web');
    await fleet.reject(agent.nodeId);
    await agent.closed;
    await fleet.agents.remove(OPERATOR, agent.nodeId);
    const token = await make(fleet, { auto_approve: true });
    const again = await fleet.join(agent.identity, { enrolment_token: token.token });
    expect(await answers(again)).toEqual(['accepted', ['pending', null]]);
  });
});

describe('names', () => {
  it.each([
    ['web-01.example.org', 'web-01'],
    ['WEB_2', 'WEB_2'],
    ['10.0.0.7', 'host-10'],
    ['3com', 'host-3com'],
    ['müller', 'müller'],
    ['a b!c', 'a-b-c'],
    ['-_x-', 'x'],
    ['', 'agent'],
    ['\u202e', 'agent'],
    ['x'.repeat(80), 'x'.repeat(64)],
    ['\u{1d54f}'.repeat(70), '\u{1d54f}'.repeat(64)],
  ])('of the host %j is %j, and the next one of it has a number', async (hostname, name) => {
    const fleet = await start();
    const token = await make(fleet, { auto_approve: true, uses: 3 });
    const names: (string | null)[] = [];
    for (let count = 0; count < 3; count += 1) {
      const agent = await come(fleet, token, hostname);
      await answers(agent);
      names.push((await fleet.agents.get(agent.nodeId)).name);
    }
    const numbered = (number: number) => `${[...name].slice(0, 62).join('')}-${number}`;
    expect(names).toEqual([name, numbered(2), numbered(3)]);
  });
});

describe('a token', () => {
  it('of one use lets one of many in that come at once', async () => {
    const fleet = await start();
    const token = await make(fleet, { auto_approve: true });
    const agents = await Promise.all(Array.from({ length: 8 }, () => fleet.dial()));
    for (const agent of agents) agent.hello({ enrolment_token: token.token });
    const told = await Promise.all(agents.map(answers));
    const accepted = told.filter(([verdict]) => verdict === 'accepted');
    expect(accepted).toEqual([['accepted', ['approved', 'box']]]);
    expect(told.filter(([verdict]) => verdict === 'used_up')).toHaveLength(7);
    expect(await fleet.agents.list({ rights: ALL_RIGHTS, status: 'approved' })).toHaveLength(1);
    expect(await fleet.events('enrolment.used')).toHaveLength(1);
    expect(await usesLeft(fleet)).toEqual([0]);
  });

  it('that has expired, was used up or revoked says so to who has it, and leaves the agent in the queue', async () => {
    const fleet = await start();
    const [old, used, revoked] = [await make(fleet, { ttl_secs: 60 }), await make(fleet), await make(fleet)];
    await come(fleet, used);
    await fleet.tokens.revoke(OPERATOR, revoked.id);
    fleet.clock.advance(60_000);
    expect(await answers(await come(fleet, old))).toEqual(['expired', ['pending', null]]);
    expect(await answers(await come(fleet, used))).toEqual(['used_up', ['pending', null]]);
    expect(await answers(await come(fleet, revoked))).toEqual(['revoked', ['pending', null]]);
  });

  it('whose secret is not known is the same to a stranger as none at all', async () => {
    const fleet = await start();
    const [open, revoked] = [await make(fleet), await make(fleet)];
    await fleet.tokens.revoke(OPERATOR, revoked.id);
    const other = parseEnrolmentToken((await make(fleet)).token);
    for (const { token, id } of [open, revoked]) {
      const guess = token.replace(/(?<=\.)[^.]+(?=\.[^.]+$)/, other?.secret.toString('base64url') ?? '');
      expect(guess).toContain(id);
      expect(await answers(await come(fleet, { token: guess }))).toEqual(['unknown', ['pending', null]]);
    }
    const unknown = open.token.replace(open.id, '01JQ2Z6T0V5X8Y4M3N7P9R1S2T');
    expect(await answers(await come(fleet, { token: unknown }))).toEqual(['unknown', ['pending', null]]);
    expect(await usesLeft(fleet)).toEqual([1, 1]);
  });

  it('is not accepted after the admin who made it was removed', async () => {
    const fleet = await start();
    const token = await make(fleet, { auto_approve: true });
    const now = fleet.clock.now();
    await markOperatorRemoved(fleet.db, OPERATOR.actor.id, { removed_at: now, removed_by: 'x' });
    expect(await answers(await come(fleet, token))).toEqual(['revoked', ['pending', null]]);
    expect(await fleet.tokens.list(OPERATOR)).toEqual([]);
  });

  it('is forgotten a week after it has expired', async () => {
    const fleet = await start();
    await make(fleet, { ttl_secs: 60 });
    fleet.clock.advance(60_000 + 7 * 24 * HOUR);
    expect(await fleet.tokens.prune()).toBe(0);
    expect(await fleet.tokens.list(OPERATOR)).toHaveLength(1);
    fleet.clock.advance(1);
    expect(await fleet.tokens.prune()).toBe(1);
    expect(await fleet.tokens.list(OPERATOR)).toEqual([]);
  });

  it('is in no table and in no event', async () => {
    const fleet = await start();
    const token = await make(fleet, { tags: { role: 'web' }, uses: 2 });
    await answers(await come(fleet, token));
    const shown = parseEnrolmentToken(token.token);
    const rows = await Promise.all([
      fleet.db.selectFrom('enrolment_tokens').selectAll().execute(),
      fleet.db.selectFrom('agents').selectAll().execute(),
      fleet.db.selectFrom('audit_events').selectAll().execute(),
    ]);
    const stored = JSON.stringify(rows);
    expect(stored).toContain(token.id);
    for (const form of ['base64url', 'base64', 'hex'] as const)
      expect(stored).not.toContain(shown?.secret.toString(form));
  });
});

describe('the queue', () => {
  it('does not count and does not push out who has a token', async () => {
    const fleet = await start({ limits: { pendingCapacity: 2, pendingPerAddress: 2 } });
    const token = await make(fleet, { uses: 3 });
    const vouched = [await come(fleet, token), await come(fleet, token)];
    await fleet.gone(await fleet.join());
    await fleet.join();
    const crowded = await fleet.join();
    expect((await crowded.closed).code).toBe(4429);
    vouched.push(await come(fleet, token));
    for (const agent of vouched) expect(await answers(agent)).toEqual(['accepted', ['pending', null]]);
    expect(await fleet.agents.list({ rights: ALL_RIGHTS, status: 'pending' })).toHaveLength(5);
    fleet.limits.pendingPerAddress = 100;
    fleet.clock.advance(1_000);
    const last = await fleet.join();
    expect(last.received).toMatchObject([{ status: 'pending' }]);
    expect(await fleet.agents.list({ rights: ALL_RIGHTS, status: 'pending' })).toHaveLength(5);
    for (const agent of vouched) expect(fleet.registry.has(agent.nodeId)).toBe(true);
  });

  it('has its limits for who brings a token that is not good, which hears so first', async () => {
    const fleet = await start({ limits: { pendingPerAddress: 1 } });
    const token = await make(fleet);
    await fleet.join();
    await fleet.tokens.revoke(OPERATOR, token.id);
    expect(await answers(await come(fleet, token))).toEqual(['revoked', 4429]);
  });

  it('tells of many bad tokens from one address once a minute', async () => {
    const fleet = await start({ limits: { pendingPerAddress: 3 } });
    const { token, id } = await make(fleet);
    for (let count = 0; count < 12; count += 1) {
      const agent = await come(fleet, { token: token.replace(id, `01JQ2Z6T0V5X8Y4M3N7P9R1S${10 + count}`) });
      expect((await answers(agent))[0]).toBe('unknown');
    }
    const refused = await fleet.events('agent.refused');
    expect(refused.map(({ metadata }) => metadata.reason)).toEqual([
      'enrolment token: the orchestrator does not know it',
      'too many agents of this address wait for approval',
    ]);
    expect(JSON.stringify(refused)).not.toContain('01JQ2Z6T0V5X8Y4M3N7P9R1S1');
    fleet.clock.advance(60_000);
    await come(fleet, { token: token.replace(id, '01JQ2Z6T0V5X8Y4M3N7P9R1S99') });
    expect(await fleet.events('agent.refused')).toHaveLength(4);
  });
});

it('a token that cannot be redeemed because the store fails costs nothing', async () => {
  const fleet = await start();
  const token = await make(fleet, { auto_approve: true });
  await fleet.db.schema.alterTable('audit_events').renameTo('hidden').execute();
  const identity = newIdentity();
  const agent = await fleet.join(identity, { enrolment_token: token.token });
  expect((await agent.closed).code).toBe(1001);
  await fleet.db.schema
    .alterTable('hidden' as 'audit_events')
    .renameTo('audit_events')
    .execute();
  expect(await usesLeft(fleet)).toEqual([1]);
  const again = await fleet.join(identity, { enrolment_token: token.token });
  expect(await answers(again)).toEqual(['accepted', ['approved', 'box']]);
});
