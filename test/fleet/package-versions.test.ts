/** Versions of packages that the orchestrator asks agents for. */
import { describe, expect, it } from 'vitest';
import { findFacts, reportedFacts } from '../../daemon/fleet/fact-store.js';
import type { PackageVersions } from '../../src/kernel/facts.js';
import type { OrchestratorMessageOf } from '../../src/wire/messages.js';
import { Fleet, type TestAgent, until } from '../support/fleet.js';

const requestsTo = (agent: TestAgent) =>
  agent.received.filter(
    (message): message is OrchestratorMessageOf<'packages_request'> => message.type === 'packages_request',
  );

/** Returns the request with this number to the agent. */
async function request(agent: TestAgent, number: number): Promise<OrchestratorMessageOf<'packages_request'>> {
  await until(() => requestsTo(agent).length > number);
  return requestsTo(agent)[number] as OrchestratorMessageOf<'packages_request'>;
}

const report = (agent: TestAgent, versions: PackageVersions, more: object = {}) =>
  agent.send({ type: 'packages', versions, problem: null, ...more } as never);

/** Asks for packages, and has the agent answer. */
async function asked(
  fleet: Fleet,
  agent: TestAgent,
  names: readonly string[],
  versions: PackageVersions,
): Promise<void> {
  const before = requestsTo(agent).length;
  const asking = fleet.versions.ask(agent.nodeId, names);
  const { request_id } = await request(agent, before);
  report(agent, versions, { request_id });
  await asking;
}

const packagesOf = async (fleet: Fleet, agent: TestAgent) =>
  (await reportedFacts(fleet.db, agent.nodeId)).parts.packages;

describe('the versions of packages', () => {
  it('are stored and shown, beside those that were asked for earlier', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await asked(fleet, agent, ['nginx', 'curl'], { nginx: '1.22.1-9' });
    expect(await packagesOf(fleet, agent)).toEqual({ nginx: '1.22.1-9' });
    expect((await fleet.facts.of(agent.nodeId)).attributes).toEqual({
      ...(await fleet.facts.of(agent.nodeId)).attributes,
      packages: { nginx: '1.22.1-9' },
    });
    expect(await fleet.events('agent.attributes_changed')).toMatchObject([
      { metadata: { changed: ['packages.nginx'] } },
    ]);
    await asked(fleet, agent, ['python3.11'], { nginx: '1.22.1-9', 'python3.11': '3.11.2-6' });
    expect(requestsTo(agent).at(-1)?.names).toEqual(['nginx', 'curl', 'python3.11']);
    expect(await packagesOf(fleet, agent)).toEqual({ nginx: '1.22.1-9', 'python3.11': '3.11.2-6' });
  });

  it('outlast a report of the other facts, and change with a report that was not requested', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await asked(fleet, agent, ['nginx'], { nginx: '1.22.1-9' });
    const parts = { packages: { nginx: '9', forged: '1' } };
    agent.send({ type: 'facts', parts, volatile: {}, own: {}, problem: null } as never);
    await fleet.quiet();
    expect(await packagesOf(fleet, agent)).toEqual({ nginx: '1.22.1-9' });
    report(agent, { nginx: '1.24.0-1', unasked: '1' });
    await until(async () => (await packagesOf(fleet, agent))?.nginx === '1.24.0-1');
    expect(await packagesOf(fleet, agent)).toEqual({ nginx: '1.24.0-1' });
    report(agent, {});
    expect((await agent.closed).reason).toMatch(/versions of its packages too often/);
  });

  it('are asked for in the background only where one is unknown', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    fleet.versions.askMissing(agent.nodeId, ['nginx']);
    const { request_id, names } = await request(agent, 0);
    expect(names).toEqual(['nginx']);
    report(agent, {}, { request_id });
    await until(async () => (await findFacts(fleet.db, agent.nodeId))?.facts.asked?.includes('nginx') === true);
    fleet.versions.askMissing(agent.nodeId, ['nginx']);
    fleet.versions.askMissing(agent.nodeId, ['curl']);
    expect((await request(agent, 1)).names).toEqual(['nginx', 'curl']);
  });

  it('refuse what needs them when the agent is away, says nothing, or its package manager fails', async () => {
    const fleet = await Fleet.start();
    const agent = await fleet.approved('web');
    await expect(fleet.versions.ask(agent.nodeId, ['nginx'])).rejects.toMatchObject({ code: 'agent_timeout' });
    const failing = expect(fleet.versions.ask(agent.nodeId, ['nginx'])).rejects.toMatchObject({
      code: 'expression_error',
      message: expect.stringMatching(/cannot read the versions of packages: rpm did not answer$/),
    });
    const { request_id } = await request(agent, 1);
    report(agent, {}, { problem: 'rpm did not answer', request_id });
    await failing;
    const many = Array.from({ length: 257 }, (_, n) => `p${n}`);
    await expect(fleet.versions.ask(agent.nodeId, many)).rejects.toMatchObject({ code: 'expression_error' });
    const cut = expect(fleet.versions.ask(agent.nodeId, ['nginx'])).rejects.toMatchObject({
      code: 'agent_not_connected',
    });
    await request(agent, 2);
    await fleet.gone(agent);
    await cut;
    await expect(fleet.versions.ask(agent.nodeId, ['nginx'])).rejects.toMatchObject({ code: 'agent_not_connected' });
    expect(await packagesOf(fleet, agent)).toBeUndefined();
  });
});
