/** Secrets on their way to agents: the engine with real secrets, and agents at the other end of its link. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { AgentSecrets } from '../../daemon/engine/agent-secrets.js';
import { findOperation } from '../../daemon/engine/operations/operation-store.js';
import { setTag } from '../../daemon/fleet/tag-store.js';
import { newSecretKeys } from '../../daemon/secrets/key-file.js';
import { Keyring } from '../../daemon/secrets/keyring.js';
import { createSecrets, type Secrets } from '../../daemon/secrets/secrets.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { rejection, temporaryDirectory } from '../support/database.js';
import { ALICE, type Bench, nodeId, openBench } from '../support/engine.js';
import { formsOf } from '../support/secrets.js';
import { StoreLab } from '../support/store-lab.js';

const VALUE = 'hunter22-hunter22';
const NEXT = 'swordfish-swordfish';
const FILES = { '/etc/app': 'user=app\npassword=$' + '{{ secrets.DB_PASSWORD }}\n' };

interface SecretsOfBench extends Secrets {
  readonly bench: Bench;
  readonly keyring: Keyring;
}

async function openWithSecrets(): Promise<SecretsOfBench> {
  const resolvers: AgentSecrets[] = [];
  const secrets: AgentSecrets = {
    resolve: async (db, agent, names) => {
      const [resolver] = resolvers;
      if (resolver === undefined) throw new Error('the bench is not open');
      return resolver.resolve(db, agent, names);
    },
  };
  const bench = await openBench({ secrets });
  const file = join(temporaryDirectory(), 'secrets.key');
  const keyring = new Keyring({ file, keys: newSecretKeys(randomBytes), randomBytes });
  const { db, uow, clock, newId } = bench;
  const all = createSecrets({ db, uow, clock, ageTime: () => clock.now(), newId, logger: silentLogger }, { keyring });
  resolvers.push(all.resolver);
  return { ...all, bench, keyring };
}

function expectNothingStored(bench: Bench, ...values: readonly string[]): void {
  const bytes = new StoreLab(bench.file).bytes();
  for (const form of values.flatMap(formsOf)) expect(bytes).not.toContain(form);
  expect(JSON.stringify(bench.events)).not.toMatch(new RegExp(values.join('|')));
}

const usesOf = ({ events }: Bench) =>
  events.filter(({ type }) => type === 'secret.used').map(({ summary, target }) => [target.name, summary]);

describe('a secret in a module', () => {
  it('reaches the agent and nothing else, and its use is reported once for each run', async () => {
    const { bench, service, usage } = await openWithSecrets();
    await service.create({ name: 'DB_PASSWORD', value: VALUE }, ALICE);
    const agent = await bench.agent('1');
    await bench.upload('app', { ...FILES, '/etc/second': FILES['/etc/app'], '/etc/plain': 'x' });
    const plan = await bench.plan(agent, ['app']);
    const detail = await bench.apply(agent, ['app']);
    expect(detail.status).toBe('succeeded');
    expect(agent.machine.get('/etc/app')).toContain(`password=${VALUE}`);
    const drift = await bench.drift(agent);
    expect(drift.status).toBe('in_sync');
    expect(JSON.stringify([plan, detail, drift])).not.toContain(VALUE);
    expect(usesOf(bench)).toEqual([
      ['DB_PASSWORD', 'the secret DB_PASSWORD was given to web-1 for a plan'],
      ['DB_PASSWORD', 'the secret DB_PASSWORD was given to web-1 for an apply'],
      ['DB_PASSWORD', 'the secret DB_PASSWORD was given to web-1 for a drift check'],
    ]);
    expectNothingStored(bench, VALUE);
    expect(await usage('DB_PASSWORD')).toMatchObject({
      modules: ['app'],
      agents: [{ node_id: agent.nodeId, name: 'web-1', current: true }],
    });
  });

  it.each<[string, (secrets: SecretsOfBench) => Promise<unknown>, RegExp]>([
    ['does not exist', async () => undefined, /the secret "DB_PASSWORD" does not exist/],
    [
      'is expired',
      async ({ service, bench }) => {
        await service.create({ name: 'DB_PASSWORD', value: VALUE, expires_at: '2026-03-01T13:00:00Z' }, ALICE);
        bench.clock.advance(3_600_000);
      },
      /the secret "DB_PASSWORD" expired at 2026-03-01T13:00:00.000Z/,
    ],
    [
      'is restricted to other agents',
      ({ service }) =>
        service.create({ name: 'DB_PASSWORD', value: VALUE, restriction: { node_ids: [nodeId('2')] } }, ALICE),
      /the secret "DB_PASSWORD" may not be given to agent "web-1": it is restricted to other agents/,
    ],
    [
      'is restricted to other tags',
      ({ service }) => service.create({ name: 'DB_PASSWORD', value: VALUE, restriction: { tags: 'role=db' } }, ALICE),
      /the secret "DB_PASSWORD" may not be given to agent "web-1": it is restricted to agents whose tags match "role=db"/,
    ],
    [
      'is restricted to this agent and to other tags',
      ({ service }) =>
        service.create(
          { name: 'DB_PASSWORD', value: VALUE, restriction: { node_ids: [nodeId('1')], tags: 'role=db' } },
          ALICE,
        ),
      /restricted to agents whose tags match "role=db"/,
    ],
  ])('that %s fails the plan and the apply before anything is sent', async (_what, prepare, message) => {
    const all = await openWithSecrets();
    const { bench } = all;
    const agent = await bench.agent('1');
    await prepare(all);
    await bench.upload('app', { ...FILES, '/etc/plain': 'x' });
    for (const work of [() => bench.plan(agent, ['app']), () => bench.apply(agent, ['app'])]) {
      const fault = await rejection(work());
      expect(fault.code).toBe('secret_unavailable');
      expect(fault.message).toMatch(message);
    }
    expect(agent.received.filter(({ type }) => type === 'run')).toEqual([]);
    expect(usesOf(bench)).toEqual([]);
  });

  it('is given to agents that fit, by tags that an operator sets and not by what the agent says', async () => {
    const { bench, service } = await openWithSecrets();
    const restriction = { node_ids: [nodeId('1'), nodeId('2')], tags: 'role=db,!retired' };
    await service.create({ name: 'DB_PASSWORD', value: VALUE, restriction }, ALICE);
    await bench.upload('app', FILES);
    const agent = await bench.agent('1');
    await bench.db.updateTable('agents').set({ attributes_json: '{"platform":"linux","role":"db"}' }).execute();
    expect(await rejection(bench.plan(agent, ['app']))).toMatchObject({ code: 'secret_unavailable' });
    await setTag(bench.db, agent.nodeId, 'role', 'db');
    expect((await bench.apply(agent, ['app'])).status).toBe('succeeded');
    await setTag(bench.db, agent.nodeId, 'retired', '');
    expect(await rejection(bench.plan(agent, ['app']))).toMatchObject({ code: 'secret_unavailable' });
  });

  it('that waits for its agent is not sent when it was taken away meanwhile', async () => {
    const { bench, service } = await openWithSecrets();
    await service.create({ name: 'DB_PASSWORD', value: VALUE }, ALICE);
    const agent = await bench.agent('1');
    await bench.upload('app', FILES);
    await bench.disconnect(agent);
    agent.connect();
    const id = await bench.start(agent, ['app']);
    expect(usesOf(bench)).toEqual([]);
    await service.update('DB_PASSWORD', { restriction: { tags: 'role=db' } }, ALICE);
    await bench.settle();
    const stored = await findOperation(bench.db, id);
    expect(stored).toMatchObject({ state: 'failed' });
    expect(stored?.error?.message).toContain('may not be given to agent');
    expect(agent.received.filter(({ type }) => type === 'run')).toEqual([]);
    expect(usesOf(bench)).toEqual([]);
    await service.update('DB_PASSWORD', { restriction: null }, ALICE);
    await bench.disconnect(agent);
    agent.connect();
    await bench.apply(agent, ['app']);
    await bench.settle();
    expect(usesOf(bench)).toHaveLength(1);
  });
});

describe('a secret that was changed', () => {
  it('makes a difference that says so, with both tags and neither value', async () => {
    const { bench, service, keyring, usage } = await openWithSecrets();
    await service.create({ name: 'DB_PASSWORD', value: VALUE }, ALICE);
    const agent = await bench.agent('1');
    await bench.upload('app', { ...FILES, '/etc/plain': 'x' });
    const before = await bench.plan(agent, ['app']);
    await bench.apply(agent, ['app']);
    await service.update('DB_PASSWORD', { value: NEXT }, ALICE);
    const [old, now] = [VALUE, NEXT].map((value) => keyring.hash('DB_PASSWORD', value).slice(0, 4));
    const note = `secret DB_PASSWORD changed since (#${old}, now #${now})`;
    expect(old).not.toBe(now);

    const plan = await bench.plan(agent, ['app']);
    expect(plan.plan_hash?.split('.')[0]).not.toBe(before.plan_hash?.split('.')[0]);
    expect(plan.resources.map(({ status, reason }) => [status, reason])).toEqual([
      ['pending', note],
      ['unchanged', null],
    ]);
    const drift = await bench.drift(agent);
    expect(drift).toMatchObject({ status: 'drifted', has_changes: true });
    expect(drift.resources.map(({ status, reason }) => [status, reason])).toEqual([
      ['pending', note],
      ['unchanged', null],
    ]);
    expect((await usage('DB_PASSWORD')).agents).toMatchObject([{ current: false }]);
    await bench.apply(agent, ['app']);
    expect(agent.machine.get('/etc/app')).toContain(NEXT);
    expect((await bench.drift(agent)).status).toBe('in_sync');
    expect((await usage('DB_PASSWORD')).agents).toMatchObject([{ current: true }]);
    expectNothingStored(bench, VALUE, NEXT);
  });

  it('makes a plan of before stale', async () => {
    const { bench, service } = await openWithSecrets();
    await service.create({ name: 'DB_PASSWORD', value: VALUE }, ALICE);
    const agent = await bench.agent('1');
    await bench.upload('app', FILES);
    const { plan_hash } = await bench.plan(agent, ['app']);
    await service.update('DB_PASSWORD', { value: NEXT }, ALICE);
    const fault = await rejection(bench.start(agent, ['app'], { expect: plan_hash ?? '' }));
    expect(fault).toMatchObject({ code: 'plan_stale' });
  });

  it('by a rotated key alone is not changed', async () => {
    const { bench, service, rotation } = await openWithSecrets();
    await service.create({ name: 'DB_PASSWORD', value: VALUE }, ALICE);
    const agent = await bench.agent('1');
    await bench.upload('app', FILES);
    await bench.apply(agent, ['app']);
    expect(await rotation.rotate()).toMatchObject({ secrets: 1 });
    expect((await bench.drift(agent)).status).toBe('in_sync');
    expect((await bench.plan(agent, ['app'])).has_changes).toBe(false);
  });
});

describe('a secret that is gone', () => {
  it('leaves what it was applied to uncompared, and says why; the rest is looked at', async () => {
    const { bench, service } = await openWithSecrets();
    await service.create({ name: 'DB_PASSWORD', value: VALUE }, ALICE);
    const agent = await bench.agent('1');
    await bench.upload('app', { ...FILES, '/etc/plain': 'x' });
    await bench.apply(agent, ['app']);
    await service.remove('DB_PASSWORD', ALICE);
    const drift = await bench.drift(agent);
    expect(drift.status).toBe('failed');
    expect(drift.resources.map(({ identity, status, error }) => [identity, status, error?.message ?? null])).toEqual([
      ['/etc/plain', 'unchanged', null],
      [
        '/etc/app',
        'failed',
        'the secret "DB_PASSWORD" no longer exists, so that what was applied with it cannot be compared',
      ],
    ]);
    agent.machine.set('/etc/plain', '{"changed":"by hand"}');
    expect((await bench.drift(agent)).status).toBe('drifted');
  });

  it('does not stand in the way of a removal', async () => {
    const { bench, service } = await openWithSecrets();
    await service.create({ name: 'DB_PASSWORD', value: VALUE }, ALICE);
    const agent = await bench.agent('1');
    await bench.upload('app', { ...FILES, '/etc/plain': 'x' });
    await bench.apply(agent, ['app']);
    await service.remove('DB_PASSWORD', ALICE);
    await bench.upload('app', { '/etc/plain': 'x' });
    expect((await bench.apply(agent, ['app'])).status).toBe('succeeded');
    expect([...agent.machine.keys()]).toEqual(['/etc/plain']);
    const sent = agent.received.flatMap((message) => (message.type === 'run_part' ? message.removals : []));
    expect(sent).toMatchObject([{ identity: '/etc/app', body: { path: '/etc/app' } }]);
    expect(sent[0]?.body).not.toHaveProperty('content');
    expectNothingStored(bench, VALUE);
  });
});
