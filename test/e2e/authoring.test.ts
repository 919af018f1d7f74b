/** From a new module to a saved plan, with the real programs: what authors and reviewers do. */
import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { AuditEvent } from '../../src/contract/audit.js';
import { moduleJsonSchema } from '../../src/language/schema.js';
import { type Ready, Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
const site = sandbox.path('site');
const file = sandbox.path('site.orch.yaml');
const plan = sandbox.path('next.orchplan');

const text = (colour: string) => `name: site
supports:
  - platform: linux
resources:
  - resource:
      directory-unix: {path: ${site}}
  - id: colour
    variants:
      - when: {platform: linux}
        resource:
          file-unix: {path: ${site}/colour, content: "${colour}\\n"}
      - when: {platform: linux, tag.role: web}
        resource:
          file-unix: {path: ${site}/colour, content: "web ${colour}\\n"}
`;

async function login(on: Sandbox, ready: Ready): Promise<void> {
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await on.orch(create)).toMatchObject({ status: 0 });
  expect(await on.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
}

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  const { ready } = await sandbox.serve();
  await login(sandbox, ready);
  const key = ['--orchestrator-key', ready.public_key];
  sandbox.start(['agent', 'connect', ready.agent_address, ...key, '--data-dir', sandbox.path('agent')]);
  let agents: readonly Agent[] = [];
  await until(async () => {
    agents = await sandbox.json<Agent[]>(['agents', 'list']);
    return agents.length === 1;
  }, 'the agent waits');
  await sandbox.json(['agents', 'approve', agents[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
  await until(async () => {
    const [agent] = await sandbox.json<Agent[]>(['agents', 'list']);
    return agent?.connected === true;
  }, 'the agent is connected');
  await sandbox.json(['agents', 'tag', 'web-01', 'role=web']);
  writeFileSync(file, text('green'));
});
afterAll(() => sandbox.dispose());

describe('the JSON Schema for editors', () => {
  it('is the same from the command and from the API, and knows every kind', async () => {
    const written = await sandbox.json(['module', 'schema']);
    expect(await sandbox.json(['api', 'GET', '/schemas/module/v1.json'])).toEqual(written);
    expect(written).toEqual(moduleJsonSchema());
  });
});

describe('a module on its way', () => {
  it('is compared with what is there, pushed, and known by its revisions', async () => {
    expect((await sandbox.orch(['module', 'diff', file])).stdout).toContain('--- /dev/null');
    await sandbox.json(['module', 'publish', file]);
    expect((await sandbox.orch(['module', 'diff', file])).stdout).toContain('is revision 1 of site');
    writeFileSync(file, text('blue'));
    const diff = await sandbox.orch(['module', 'diff', file]);
    expect(diff.stdout).toContain('-          file-unix: {path: ');
    expect(diff.stdout).toContain('+++ ');
    await sandbox.json(['module', 'publish', file]);
    expect((await sandbox.orch(['module', 'diff', file, '--revision', '1'])).stdout).toContain('web blue');
    const revisions = await sandbox.orch(['module', 'revisions', 'site', '-o', 'name']);
    expect(revisions).toMatchObject({ status: 0, stdout: '2\n1\n' });
    expect((await sandbox.orch(['module', 'revisions', 'none'])).stderr).toContain('none');
  });

  it('is checked together with others for the agents of the orchestrator', async () => {
    const other = sandbox.path('other.orch.yaml');
    const clash = `name: other\nsupports:\n  - platform: linux\nresources:\n  - resource:\n      file-unix: {path: ${site}/colour, content: x}\n`;
    writeFileSync(other, clash);
    const check = await sandbox.orch(['module', 'check', file, other]);
    expect(check.status).toBe(1);
    expect(check.stdout).toMatch(/other\.orch\.yaml:6:\d+: error: .* is declared differently by/);
    expect((await sandbox.orch(['module', 'check', file])).status).toBe(0);
  });
});

describe('a plan in a file', () => {
  const makePlan = () => sandbox.orch(['plan', 'web-01', '-m', 'site', '--out', plan]);

  it('is applied as it was shown', async () => {
    expect(await makePlan()).toMatchObject({ status: 0 });
    expect(statSync(plan).mode & 0o777).toBe(0o600);
    expect(await sandbox.orch(['apply', plan, '--yes'])).toMatchObject({ status: 0 });
    expect(readFileSync(`${site}/colour`, 'utf8')).toBe('web blue\n');
  });

  it('is refused when the machine or the module has changed since', async () => {
    appendFileSync(`${site}/colour`, 'one\n');
    await makePlan();
    appendFileSync(`${site}/colour`, 'two\n');
    const machine = await sandbox.orch(['apply', plan, '--yes']);
    expect(machine.status).toBe(6);
    expect(readFileSync(`${site}/colour`, 'utf8')).toBe('web blue\none\ntwo\n');

    await makePlan();
    writeFileSync(file, text('red'));
    await sandbox.json(['module', 'publish', file]);
    const module = await sandbox.orch(['apply', plan, '--yes']);
    expect(module.status).toBe(6);
    expect(module.stderr).toContain('no longer what the plan showed');
    expect(readFileSync(`${site}/colour`, 'utf8')).toContain('blue');
  });

  it('of files stores nothing, and its apply publishes what was planned', async () => {
    const revisions = async () => (await sandbox.orch(['module', 'revisions', 'site', '-o', 'name'])).stdout;
    const before = await revisions();
    writeFileSync(file, text('grey'));
    const shown = await sandbox.orch(['plan', 'web-01', '-f', file]);
    expect(shown.stdout).toContain('web grey');
    expect(await sandbox.orch(['plan', 'web-01', '-f', file, '--out', plan])).toMatchObject({ status: 0 });
    expect((await sandbox.orch(['impact', file])).status).toBe(0);
    expect((await sandbox.orch(['module', 'check', file])).status).toBe(0);
    expect(await revisions()).toBe(before);
    const [event] = (await sandbox.json<{ events: AuditEvent[] }>(['audit', 'list', '--type', 'state.planned'])).events;
    const digest = createHash('sha256').update(text('grey')).digest('hex');
    expect(event).toMatchObject({ metadata: { modules: ['site'], sent: { site: digest } } });
    expect(event?.summary).toContain('(site as sent with the request, not stored)');

    // The file may be another one by now.
    writeFileSync(file, text('black'));
    const applied = await sandbox.orch(['apply', plan, '--yes']);
    expect(applied).toMatchObject({ status: 0 });
    expect(applied.stdout).toContain('Published module site.');
    expect(readFileSync(`${site}/colour`, 'utf8')).toBe('web grey\n');
    expect((await sandbox.json<{ sha256: string }>(['module', 'show', 'site'])).sha256).toBe(digest);
    // Once more, it is what is stored already.
    await sandbox.orch(['apply', plan, '--yes']);
    expect((await revisions()).split('\n')).toHaveLength(before.split('\n').length + 1);
  });

  it('of files does not publish over a revision that came since, and says so', async () => {
    writeFileSync(file, text('white'));
    await sandbox.orch(['plan', 'web-01', '-f', file, '--out', plan]);
    writeFileSync(file, text('pink'));
    await sandbox.json(['module', 'publish', file]);
    const applied = await sandbox.orch(['apply', plan, '--yes']);
    expect(applied).toMatchObject({ status: 0 });
    expect(applied.stderr).toContain('Module site has changed on the orchestrator since the plan');
    expect(applied.stdout).toContain('Module site is on trial, not published');
    expect(readFileSync(`${site}/colour`, 'utf8')).toContain('white');
    expect((await sandbox.json<{ content: string }>(['module', 'show', 'site'])).content).toBe(text('pink'));
  });

  it('is refused by another orchestrator', async () => {
    const other = new Sandbox();
    try {
      await other.orch(['operator', 'init']);
      const { ready } = await other.serve();
      await login(other, ready);
      const refused = await other.orch(['apply', plan, '--yes']);
      expect(refused.status).toBe(1);
      expect(refused.stderr).toContain('the plan is of the orchestrator at https://127.0.0.1:');
    } finally {
      await other.dispose();
    }
  });
});

describe('orch explain', () => {
  it('names what put a resource there', async () => {
    await sandbox.json(['apply', 'web-01', '-m', 'site', '--yes']);
    const told = await sandbox.orch(['explain', 'web-01', 'file-unix', `${site}/colour`]);
    expect(told.status).toBe(0);
    expect(told.stdout).toContain('site:14:22, resource "colour"');
    expect(told.stdout).toContain('2 of 2: platform=linux, tag.role=web');
    expect(told.stdout).toContain('no assignment that matches the agent now');
    expect((await sandbox.orch(['explain', 'web-01', '/etc/none'])).status).toBe(1);
  });
});
