import { describe, expect, it } from 'vitest';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import { updateAgent } from '../../daemon/fleet/agent-store.js';
import { putFacts } from '../../daemon/fleet/fact-store.js';
import type { AssignmentMode } from '../../src/kernel/assignment-modes.js';
import type { Fault } from '../../src/kernel/fault.js';
import { ALICE, type Bench, openBench, type ScriptedAgent } from '../support/engine.js';

const UNCHANGED = { modules: null, selector: null, description: null };

const MODULE = `name: site
supports: [{platform: linux}]
resources:
  - file-unix: {path: /keep, content: ""}
  - {if: attributes.memory_mb > 2000, file-unix: {path: /big, content: ""}}
  - {if: facts.app.role == "web", file-unix: {path: /web, content: ""}}
  - {if: tags.extra != "no", file-unix: {path: /extra, content: ""}}
  - {for_each: "facts.sites | default: \\"\\"", file-unix: {path: "/s/\${{ each.key }}", content: ""}}
`;

const ATTRIBUTES = { platform: 'linux', arch: 'x86_64', distro: 'debian' };

/** The agent reports other attributes, or other facts of its own. */
async function report(
  bench: Bench,
  agent: ScriptedAgent,
  { memory, own }: { readonly memory?: string; readonly own?: Readonly<Record<string, unknown>> },
): Promise<void> {
  const attributes = { ...ATTRIBUTES, ...(memory === undefined ? {} : { memory_mb: memory }) };
  await updateAgent(bench.db, agent.nodeId, { attributes });
  if (own !== undefined) {
    const facts = Object.entries(own).map(([name, value]) => [name, { value, error: null, since: null }]);
    await putFacts(bench.db, agent.nodeId, {
      facts: { parts: {}, volatile: {}, own: Object.fromEntries(facts), problem: null },
      reported_at: bench.clock.now(),
    });
  }
  bench.clock.advance(10_000);
  await bench.tell('agent.attributes_changed', agent);
  await bench.rest();
  await bench.settle();
  await bench.rest();
}

const OWN = { app: { role: 'web' }, sites: ['a', 'b'] };

/** An agent with the module applied under 4096 MB and both facts. */
async function applied(mode: AssignmentMode) {
  const bench = await openBench();
  const agent = await bench.agent('a', { connected: false });
  await bench.arrive(agent);
  await bench.engine.modules.upload({ name: 'site', content: MODULE }, ALICE);
  await bench.engine.assignments.create({ name: 'all', modules: ['site'], selector: '*', description: null }, ALICE);
  await report(bench, agent, { memory: '4096', own: OWN });
  expect((await bench.apply(agent, [])).status).toBe('succeeded');
  await bench.engine.assignments.update('all', { ...UNCHANGED, mode }, ALICE);
  await bench.rest();
  return { bench, agent };
}

const stopOf = (bench: Bench, agent: ScriptedAgent) => bench.engine.standings.of(agent.nodeId).automation_stopped;
const has = ({ machine }: ScriptedAgent, ...paths: string[]) => paths.map((path) => machine.has(path));

async function rejection(work: Promise<unknown>): Promise<Fault> {
  return work.then(
    () => Promise.reject(new Error('it was not refused')),
    (error) => error,
  );
}

describe('a removal that only a changed fact causes', () => {
  it('waits for a person under enforce, and says why and how to go on', async () => {
    const { bench, agent } = await applied('enforce');
    expect(has(agent, '/keep', '/big', '/web', '/extra', '/s/a')).toEqual([true, true, true, true, true]);
    await report(bench, agent, { memory: '1024' });
    expect(has(agent, '/big')).toEqual([true]);
    expect(stopOf(bench, agent)).toMatchObject({
      code: 'facts_removal',
      message:
        'an automatic apply would remove 1 resource from web-a because facts of it have changed, and waits for a person ' +
        '(orch apply web-a --allow-removals 1): file-unix /big (attributes.memory_mb changed from 4096 to 1024)',
    });
    // Resuming the assignment is no consent to the removal.
    await bench.engine.assignments.resume('all', ALICE);
    bench.clock.advance(60_000);
    await bench.rest();
    expect(has(agent, '/big')).toEqual([true]);
    expect(stopOf(bench, agent)?.code).toBe('facts_removal');
    // A person goes on, and learns the reason.
    const request = { nodeId: agent.nodeId, modules: [], limits: NO_LIMITS, expect: null };
    const { notes } = await bench.engine.applies.start(request, ALICE);
    expect(notes).toEqual(['file-unix /big goes because attributes.memory_mb changed from 4096 to 1024']);
    await bench.settle();
    await bench.rest();
    expect(has(agent, '/big', '/keep')).toEqual([false, true]);
    expect(stopOf(bench, agent)).toBeNull();
    expect(bench.engine.standings.of(agent.nodeId).standing).toBe('in_sync');
    // What a fact adds needs no person.
    await report(bench, agent, { memory: '8192' });
    expect(has(agent, '/big')).toEqual([true]);
  });

  it('waits when an agent connects, and no longer once the fact has come back', async () => {
    const { bench, agent } = await applied('on-connect');
    await bench.leave(agent);
    await updateAgent(bench.db, agent.nodeId, { attributes: ATTRIBUTES });
    await bench.arrive(agent);
    expect(has(agent, '/big')).toEqual([true]);
    expect(stopOf(bench, agent)).toMatchObject({
      code: 'facts_removal',
      message: expect.stringContaining('(attributes.memory_mb is missing, and was 4096)'),
    });
    await report(bench, agent, { memory: '4096' });
    expect(stopOf(bench, agent)).toBeNull();
    expect(bench.engine.standings.of(agent.nodeId).standing).toBe('in_sync');
  });

  it("waits for facts of one's own that change or go, also when a loop is emptied or only shorter", async () => {
    const { bench, agent } = await applied('enforce');
    await report(bench, agent, { memory: '4096', own: { ...OWN, sites: ['a'] } });
    expect(stopOf(bench, agent)).toMatchObject({
      code: 'facts_removal',
      message: expect.stringContaining('file-unix /s/b (facts.sites changed from ["a","b"] to ["a"])'),
    });
    await report(bench, agent, { memory: '4096', own: { sites: ['a', 'b'] } });
    expect(stopOf(bench, agent)?.message).toContain('file-unix /web (facts.app.role is missing, and was "web")');
    await report(bench, agent, { memory: '4096', own: { app: OWN.app } });
    expect(stopOf(bench, agent)).toMatchObject({ code: 'removal_guard' });
    expect(stopOf(bench, agent)?.message).toContain('/s/a (facts.sites is missing, and was ["a","b"])');
    expect(has(agent, '/web', '/s/a', '/s/b')).toEqual([true, true, true]);
    const refused = await rejection(bench.start(agent, []));
    expect(refused.message).toContain('file-unix /s/b (facts.sites is missing, and was ["a","b"])');
  });

  it('is explained when an attribute takes a whole assignment away', async () => {
    const { bench, agent } = await applied('manual');
    await bench.upload('other', { '/other': '1' });
    const selected = { name: 'arm', modules: ['other'], selector: 'arch=x86_64', description: null };
    await bench.engine.assignments.create(selected, ALICE);
    await bench.apply(agent, []);
    await updateAgent(bench.db, agent.nodeId, { attributes: { ...ATTRIBUTES, arch: 'aarch64', memory_mb: '4096' } });
    const request = { nodeId: agent.nodeId, modules: [], limits: NO_LIMITS, expect: null };
    const { notes } = await bench.engine.applies.start(request, ALICE);
    expect(notes).toEqual(['file-unix /other goes because attributes.arch changed from "x86_64" to "aarch64"']);
  });
});

describe('a removal that a person has caused', () => {
  it('is made by itself under enforce: a tag, a module, or both beside a changed fact', async () => {
    const { bench, agent } = await applied('enforce');
    await bench.db.insertInto('agent_tags').values({ node_id: agent.nodeId, key: 'extra', value: 'no' }).execute();
    bench.clock.advance(10_000);
    await bench.tell('agent.tags_changed', agent);
    await bench.rest();
    await bench.settle();
    await bench.rest();
    expect(has(agent, '/extra')).toEqual([false]);
    bench.clock.advance(10_000);
    await bench.engine.modules.upload({ name: 'site', content: MODULE.replace('> 2000', '> 5000') }, ALICE);
    await bench.rest();
    await bench.settle();
    await bench.rest();
    expect(has(agent, '/big', '/keep')).toEqual([false, true]);
    expect(stopOf(bench, agent)).toBeNull();
  });

  it('is made when the module is changed so that the fact no longer matters', async () => {
    const { bench, agent } = await applied('manual');
    await updateAgent(bench.db, agent.nodeId, { attributes: { ...ATTRIBUTES, memory_mb: '1024' } });
    const content = MODULE.replace('attributes.memory_mb > 2000', 'tags.big == "yes"');
    await bench.engine.modules.upload({ name: 'site', content }, ALICE);
    await bench.engine.assignments.update('all', { ...UNCHANGED, mode: 'enforce' }, ALICE);
    bench.clock.advance(10_000);
    await bench.tell('agent.attributes_changed', agent);
    await bench.rest();
    await bench.settle();
    await bench.rest();
    expect(has(agent, '/big')).toEqual([false]);
  });
});

it('agents with the same facts share a content, and one with another nested fact does not', async () => {
  const { bench, agent } = await applied('manual');
  const other = await bench.agent('b');
  await report(bench, other, { memory: '4096', own: OWN });
  const wanted = async (one: ScriptedAgent) => (await bench.engine.standings.look(one.nodeId))?.evaluation.wantedSha256;
  expect(await wanted(other)).toBe(await wanted(agent));
  await report(bench, other, { memory: '4096', own: { ...OWN, app: { role: 'db' } } });
  expect(await wanted(other)).not.toBe(await wanted(agent));
  await report(bench, other, { memory: '3000', own: { ...OWN, unread: 1 } });
  expect(await wanted(other)).not.toBeUndefined();
});
