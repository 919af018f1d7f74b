/** Applies that bring back the desired state of an earlier operation. */

import { describe, expect, it } from 'vitest';
import type { AgentSecrets } from '../../daemon/engine/agent-secrets.js';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import type { OutputCipher } from '../../daemon/engine/operations/operation-outputs.js';
import { deleteOperationsBefore } from '../../daemon/engine/operations/operation-store.js';
import { deleteAgent, insertAgent } from '../../daemon/fleet/agent-store.js';
import type { SecretRefusal } from '../../src/language/filling.js';
import { agentRow, rejection } from '../support/database.js';
import { ALICE, type Bench, openBench, type ScriptedAgent } from '../support/engine.js';

/** Values of secrets, which the test changes. */
const changing = (values: Map<string, string | SecretRefusal>): AgentSecrets => ({
  resolve: async () => {
    const hashes = new Map<string, string>();
    return {
      hashes,
      source: (name) => {
        const found = values.get(name);
        if (typeof found !== 'string') return found ?? null;
        hashes.set(name, Buffer.from(found).toString('hex').padEnd(32, '0'));
        return { value: found, tag: Buffer.from(found).toString('hex').slice(0, 4) };
      },
    };
  },
});

const plainCipher: OutputCipher = { seal: () => ({ output: '', keyId: 'k' }) as never, open: () => null };

/** An agent with two applies: `/a` and `/b` in the first, a changed `/a` and `/c` in the second. */
async function twice(bench: Bench): Promise<{ agent: ScriptedAgent; first: string; second: string }> {
  const agent = await bench.agent('1');
  await bench.upload('site', { '/a': 'one', '/b': 'one' });
  const first = await bench.apply(agent, ['site']);
  await bench.upload('site', { '/a': 'two', '/c': 'two' });
  const second = await bench.apply(agent, ['site']);
  return { agent, first: first.operation_id, second: second.operation_id };
}

const identities = (results: readonly { identity: string; action: string }[]) =>
  results.map(({ identity, action }) => `${action} ${identity}`);

describe('an apply of an earlier desired state', () => {
  it('brings back what was there, removes what came later, and says so everywhere', async () => {
    const bench = await openBench();
    const { agent, first, second } = await twice(bench);

    const plan = await bench.planBack(agent, first);
    expect(plan).toMatchObject({ restores: first, notes: [], modules: ['site'], summary: { total: 3, removed: 1 } });
    expect(identities(plan.resources)).toEqual(['update /a', 'create /b', 'remove /c']);
    expect(bench.events.at(-1)).toMatchObject({
      type: 'state.planned',
      summary: `alice planned the desired state of operation ${first} on web-1`,
      metadata: { modules: ['site'], restores: first },
    });

    const back = await bench.apply(agent, [], { to: first, expect: plan.plan_hash ?? '' });
    expect(back).toMatchObject({ status: 'succeeded', restores: first, modules: ['site'], assignments: [] });
    expect([...agent.machine.keys()].sort()).toEqual(['/a', '/b']);
    expect(agent.machine.get('/a')).toContain('one');
    const state = await bench.engine.state.get(agent.nodeId);
    expect(state).toMatchObject({ operation_id: back.operation_id, restores: first });
    expect(state.applied.map(({ identity }) => identity)).toEqual(['/a', '/b']);
    const told = bench.events.filter(({ type }) => type.startsWith('state.apply_')).slice(-2);
    expect(told.map(({ summary }) => summary)).toEqual([
      `alice started an apply of the desired state of operation ${first} on web-1`,
      `the apply of the desired state of operation ${first} on web-1 succeeded: 3 changed of 3`,
    ]);
    expect(told.map(({ metadata }) => metadata.restores)).toEqual([first, first]);

    // Nothing is left to do, and the drift check compares with what was brought back.
    expect(await bench.planBack(agent, first)).toMatchObject({ has_changes: false });
    expect(await bench.drift(agent)).toMatchObject({ status: 'in_sync' });
    expect(await bench.engine.operations.get(second)).not.toHaveProperty('restores');
    // It can itself be gone back to.
    await bench.apply(agent, [], { to: second });
    expect(await bench.apply(agent, [], { to: back.operation_id })).toMatchObject({ status: 'succeeded' });
    expect([...agent.machine.keys()].sort()).toEqual(['/a', '/b']);
  });

  it('leaves the modules of assignments behind until the next apply, and says so', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', { '/a': 'one' });
    await bench.engine.assignments.create({ name: 'web', modules: ['site'], selector: '*', description: null }, ALICE);
    const first = await bench.apply(agent, []);
    await bench.upload('site', { '/a': 'two' });
    await bench.apply(agent, []);

    const note = 'assignment web matches this agent: the next apply without --to brings the assigned modules back';
    expect((await bench.planBack(agent, first.operation_id)).notes).toEqual([note]);
    const started = bench.engine.applies.start(
      { nodeId: agent.nodeId, modules: [], to: first.operation_id, limits: NO_LIMITS, expect: null },
      ALICE,
    );
    const { operation, notes } = await started;
    await bench.settle();
    expect(notes).toEqual([note]);
    expect(bench.engine.operations.begun(operation, await started)).toMatchObject({ notes: [note] });
    expect(agent.machine.get('/a')).toContain('one');
    await bench.apply(agent, []);
    expect(agent.machine.get('/a')).toContain('two');
  });

  it('is refused with the reason where the operation is not one of the agent', async () => {
    const bench = await openBench();
    const { agent, first } = await twice(bench);
    const other = await bench.agent('2');
    const foreign = await rejection(bench.start(other, [], { to: first }));
    expect(foreign).toMatchObject({
      code: 'operation_unsuitable',
      message: `web-2 cannot go back to operation ${first}: it is one of another agent, web-1`,
      hint: 'see its operations: orch ops list --agent web-2',
    });
    expect((await rejection(bench.planBack(other, first))).code).toBe('operation_unsuitable');
    const unknown = await rejection(bench.start(agent, [], { to: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T' }));
    expect(unknown).toMatchObject({
      code: 'operation_not_found',
      hint: 'it may have been deleted by retention; see its operations: orch ops list --agent web-1',
    });
    // A refused apply leaves the agent free.
    expect((await bench.apply(agent, ['site'])).status).toBe('succeeded');
  });

  it('is refused for an operation of a removed agent with the same key', async () => {
    const bench = await openBench();
    const { agent, first } = await twice(bench);
    await bench.disconnect(agent);
    await deleteAgent(bench.db, agent.nodeId);
    bench.clock.advance(1000);
    const row = agentRow({ node_id: agent.nodeId, name: 'again', created_at: bench.clock.now() });
    await insertAgent(bench.db, { ...row, created_id: bench.newId() });
    agent.connect();
    await bench.settle();
    expect(await rejection(bench.start(agent, [], { to: first }))).toMatchObject({
      code: 'operation_unsuitable',
      message: `again cannot go back to operation ${first}: it is one of an agent with the same key that has been removed since`,
    });
  });

  it('is refused once retention has deleted the operation', async () => {
    const bench = await openBench();
    const { agent, first } = await twice(bench);
    await bench.apply(agent, ['site']);
    bench.clock.advance(60_000);
    expect(await deleteOperationsBefore(bench.db, bench.clock.now(), 1000)).toBeGreaterThan(0);
    expect(await rejection(bench.start(agent, [], { to: first }))).toMatchObject({ code: 'operation_not_found' });
  });

  it('takes the desired state of an operation that failed, and says that it did', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', { '/a': 'one' });
    agent.mishaps.set('/a', 'fail');
    const failed = await bench.apply(agent, ['site']);
    agent.mishaps.clear();
    await bench.upload('site', { '/a': 'two' });
    await bench.apply(agent, ['site']);
    expect((await bench.planBack(agent, failed.operation_id)).notes).toEqual([
      `operation ${failed.operation_id} failed: its desired state may never have been reached on this machine`,
    ]);
    await bench.apply(agent, [], { to: failed.operation_id });
    expect(agent.machine.get('/a')).toContain('one');
  });

  it('is under the removal guard, which names the operation', async () => {
    const bench = await openBench({ removalGuard: () => 0 });
    const agent = await bench.agent('1');
    await bench.upload('site', { '/a': '' });
    const first = (await bench.apply(agent, ['site'])).operation_id;
    await bench.upload('more', { '/m': '' });
    await bench.engine.assignments.create({ name: 'all', modules: ['more'], selector: '*', description: null }, ALICE);
    await bench.apply(agent, ['site']);
    expect(await rejection(bench.start(agent, [], { to: first }))).toMatchObject({
      code: 'removal_guard',
      message: `this apply would remove 1 resource from web-1, more than the 0 that need no consent: file-unix /m (operation ${first} did not have it)`,
      hint: 'to remove it, say how many: orch apply … --allow-removals 1',
    });
    expect(await bench.apply(agent, [], { to: first, allowRemovals: 1 })).toMatchObject({ status: 'succeeded' });
    expect(agent.machine.has('/m')).toBe(false);
  });

  it('empties the agent when it desires nothing, with the consent of the caller', async () => {
    const bench = await openBench();
    const { agent } = await twice(bench);
    expect(await rejection(bench.start(agent, [], { to: { nothing: true } }))).toMatchObject({
      code: 'removal_guard',
      data: { reason: 'all', removals: [{ cause: 'nothing is desired' }, { cause: 'nothing is desired' }] },
    });
    const emptied = await bench.apply(agent, [], { to: { nothing: true }, allowRemovals: 2 });
    expect(emptied).toMatchObject({ status: 'succeeded', restores: 'nothing', modules: [] });
    expect(agent.machine.size).toBe(0);
    expect(bench.events.at(-1)?.summary).toBe('the apply of no desired state on web-1 succeeded: 2 changed of 2');
    expect((await bench.engine.state.get(agent.nodeId)).applied).toEqual([]);
  });

  it('says where it goes back to also after a restart', async () => {
    const bench = await openBench();
    const { agent, first } = await twice(bench);
    agent.diligent = false;
    const id = await bench.start(agent, [], { to: first });
    await bench.settle();
    await bench.restart();
    agent.diligent = true;
    agent.connect();
    await bench.settle();
    expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'succeeded', restores: first });
    expect(bench.events.at(-1)).toMatchObject({ metadata: { operation_id: id, restores: first } });
  });
});

describe('the secrets of an earlier desired state', () => {
  const SITE = `name: site
supports: [{platform: linux}]
resources:
  - resource: {file-unix: {path: /token, content: "token=\${{ secrets.TOKEN }};"}}
`;

  async function applied() {
    const values = new Map<string, string | SecretRefusal>([['TOKEN', 'first-value']]);
    const bench = await openBench({ secrets: changing(values), outputCipher: plainCipher });
    const agent = await bench.agent('1');
    await bench.engine.modules.upload({ name: 'site', content: SITE }, ALICE);
    const first = (await bench.apply(agent, ['site'])).operation_id;
    await bench.upload('site', { '/other': '' });
    await bench.apply(agent, ['site'], { allowRemovals: 9 });
    return { bench, agent, values, first };
  }

  it('have their present values, and the store keeps masks', async () => {
    const { bench, agent, values, first } = await applied();
    values.set('TOKEN', 'a-second-and-longer-value');
    const plan = await bench.planBack(agent, first);
    expect(plan.notes).toEqual([`the present value of TOKEN differs from that of operation ${first}`]);
    const back = await bench.apply(agent, [], { to: first, expect: plan.plan_hash ?? '', allowRemovals: 9 });
    expect(back.status).toBe('succeeded');
    expect(agent.machine.get('/token')).toContain('token=a-second-and-longer-value;');
    const stored = await bench.db.selectFrom('run_contents').select('content_json').execute();
    expect(JSON.stringify(stored)).not.toContain('second-and-longer');
    const used = bench.events.filter(({ type }) => type === 'secret.used');
    expect(used.at(-1)?.target.id).toBe('TOKEN');
    expect(await bench.drift(agent)).toMatchObject({ status: 'in_sync' });
  });

  it('make a plan stale when they change after it', async () => {
    const { bench, agent, values, first } = await applied();
    const plan = await bench.planBack(agent, first);
    values.set('TOKEN', 'changed');
    const late = bench.start(agent, [], { to: first, expect: plan.plan_hash ?? '', allowRemovals: 9 });
    expect((await rejection(late)).code).toBe('plan_stale');
  });

  it('are refused where a resource does not accept the present value, which is not shown', async () => {
    const { bench, agent, values } = await applied();
    values.set('MODE', '0600');
    const content = SITE.replace('path: /token,', `path: /token, mode: "\${{ secrets.MODE }}",`);
    await bench.engine.modules.upload({ name: 'site', content }, ALICE);
    const first = (await bench.apply(agent, ['site'], { allowRemovals: 9 })).operation_id;
    values.set('MODE', 'not-a-mode');
    expect(await rejection(bench.start(agent, [], { to: first }))).toMatchObject({
      code: 'expression_error',
      message: `file-unix /token of operation ${first} does not accept the present value of a secret in /mode, /content (it is not shown)`,
    });
  });

  it.each([
    ['removed', null, 'the secret "TOKEN" no longer exists'],
    ['refused', { refused: 'expired yesterday' }, 'the secret "TOKEN" expired yesterday'],
  ])('are named when one is %s, and nothing is sent', async (_, value, why) => {
    const { bench, agent, values, first } = await applied();
    if (value === null) values.delete('TOKEN');
    else values.set('TOKEN', value);
    const sent = agent.received.length;
    const fault = await rejection(bench.start(agent, [], { to: first, allowRemovals: 9 }));
    expect(fault).toMatchObject({ code: 'secret_unavailable', message: `${why}, and operation ${first} needs it` });
    expect(agent.received).toHaveLength(sent);
  });
});
