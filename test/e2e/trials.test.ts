/** Trials with real processes: four machines that an assignment in mode enforce gives a module. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { AgentImpact } from '../../src/cli/commands/impact.js';
import type { Agent, FleetSummary } from '../../src/contract/agents.js';
import type { Module, ModuleRevision } from '../../src/contract/modules.js';
import type { Operation } from '../../src/contract/operations.js';
import type { RunResult } from '../../src/contract/runs.js';
import { ORCH, type Ready, type Running, Sandbox, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const sandbox = new Sandbox();
const NAMES = ['web-01', 'web-02', 'web-03', 'web-04'] as const;
let server: Running;
let ready: Ready;

const portOf = (address: string) => address.slice(address.lastIndexOf(':') + 1);
const place = (name: string) => sandbox.path('machines', name, 'site');
const contentOf = (name: string) => (existsSync(place(name)) ? readFileSync(place(name), 'utf8').trim() : null);
const contents = () => NAMES.map(contentOf);

/** Writes the module with a content; the path is another one on each machine. */
function site(content: string): string {
  const file = sandbox.path('site.orch.yaml');
  const path = sandbox.path('machines', `\${{ agent.name }}`, 'site');
  const resource = `file-unix: {path: "${path}", content: "${content}\\n"}`;
  writeFileSync(file, `name: site\nsupports: [{platform: linux}]\nresources:\n  - resource: {${resource}}\n`);
  return file;
}

const agents = () => sandbox.json<Agent[]>(['agents', 'list']);
const shown = (name: string) => sandbox.json<Agent>(['agents', 'show', name]);
const standings = async () => (await agents()).map(({ standing }) => standing);
const stand = (...expected: readonly (string | null)[]) =>
  until(
    async () => JSON.stringify(await standings()) === JSON.stringify(expected),
    `the machines are ${expected.join(', ')}`,
  );
const revisions = async () =>
  (await sandbox.json<{ revisions: ModuleRevision[] }>(['module', 'revisions', 'site'])).revisions;

/** Returns the applies that the orchestrator has started by itself. Every standing is evaluated before. */
async function automatic(): Promise<number> {
  const { operations } = await sandbox.json<{ operations: Operation[] }>(['ops', 'list', '--limit', '500']);
  return operations.filter(({ requested_by }) => /:/.test(requested_by)).length;
}

async function startAgent(name: string): Promise<void> {
  mkdirSync(sandbox.path('machines', name), { recursive: true });
  const key = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path(`agent-${name}`)];
  sandbox.start(['agent', 'connect', ready.agent_address, ...key, '--hostname', name]);
  let pending: Agent | undefined;
  await until(async () => {
    pending = (await agents()).find(({ status }) => status === 'pending');
    return pending !== undefined;
  }, `${name} waits`);
  await sandbox.json(['agents', 'approve', pending?.node_id ?? '', '--name', name, '--yes']);
}

/** Runs `orch` on a terminal, and answers its questions. */
async function onTerminal(args: readonly string[], answers: readonly (readonly [RegExp, string])[]): Promise<string> {
  const pty = new Pty([process.execPath, ORCH, ...args], { env: sandbox.env, cwd: sandbox.root, cols: 160, rows: 50 });
  onTestFinished(() => pty.kill());
  for (const [at, keys] of answers) {
    await pty.shows(at);
    pty.write(keys);
  }
  await pty.ended();
  return pty.lines.join('\n');
}

beforeAll(async () => {
  expect(await sandbox.orch(['operator', 'init'])).toMatchObject({ status: 0 });
  ({ server, ready } = await sandbox.serve());
  const url = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(['profile', 'create', 'test', ...url])).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  await sandbox.json(['module', 'publish', site('one')]);
  await sandbox.json(['assignments', 'create', 'all', '-m', 'site', '-l', 'platform=linux', '--mode', 'enforce']);
  for (const name of NAMES) await startAgent(name);
  await stand('in_sync', 'in_sync', 'in_sync', 'in_sync');
});

afterAll(() => sandbox.dispose());

describe('a saved plan that has become stale', () => {
  it('changes no machine and stores nothing', async () => {
    const plan = sandbox.path('next.orchplan');
    await sandbox.json(['plan', 'web-01', '-f', site('stale'), '--out', plan]);
    writeFileSync(place('web-01'), 'by hand\n');
    const before = await automatic();
    const refused = await sandbox.orch(['apply', plan, '--yes']);
    expect(refused.status).toBe(6);
    const { operations } = await sandbox.json<{ operations: Operation[] }>(['ops', 'list', '--limit', '1']);
    const operation = await sandbox.json<Operation>(['ops', 'show', operations[0]?.operation_id ?? '']);
    expect(operation).toMatchObject({ error: { code: 'plan_stale' } });
    expect(operation).not.toHaveProperty('sources');
    expect(await revisions()).toHaveLength(1);
    expect((await sandbox.json<Agent[]>(['agents', 'list', '--status', 'on_trial'])).length).toBe(0);
    // An apply of each machine comes after all that a stored revision would have caused.
    for (const name of NAMES) await sandbox.json(['apply', name, '--yes']);
    expect(contents()).toEqual(['one', 'one', 'one', 'one']);
    expect(await automatic()).toBe(before);
  });
});

describe('an apply of a file to one machine of four', () => {
  it('says before and after it what becomes of the module, and changes that machine alone', async () => {
    const before = await automatic();
    const file = site('two');
    const screen = await onTerminal(['apply', 'web-01', '-f', file], [[/Apply this to web-01\?/, 'y\r']]);
    expect(screen).toContain('Module site goes on trial on web-01 and is not published: 3 other machines follow it');
    expect(screen).toContain('by assignments in mode enforce too');
    expect(screen).toContain('publish with: orch module publish --from web-01 site');
    expect(contents()).toEqual(['two', 'one', 'one', 'one']);
    await stand('on_trial', 'in_sync', 'in_sync', 'in_sync');
    expect(await revisions()).toHaveLength(1);
    expect(await automatic()).toBe(before);
    const { trial } = await shown('web-01');
    expect(trial?.modules.map(({ module }) => module)).toEqual(['site']);
    expect((await sandbox.json<FleetSummary>(['status'])).standings).toMatchObject({ on_trial: 1, in_sync: 3 });
    for (const argv of [
      ['agents', 'list'],
      ['agents', 'show', 'web-01'],
      ['status'],
      ['state', 'web-01'],
      ['explain', 'web-01', place('web-01')],
    ]) {
      expect((await sandbox.orch(argv)).stdout, argv.join(' ')).toContain('on trial');
    }
    const impact = await sandbox.json<{ agents: AgentImpact[] }>(['impact', file]);
    expect(impact.agents.map(({ changes }) => changes.length)).toEqual([0, 1, 1, 1]);
    const drift = await sandbox.orch(['drift', 'web-01']);
    expect(drift.stdout).toContain('on trial: compared with site as tried, not published');
  });

  it('stays so over a restart of the orchestrator', async () => {
    expect(await server.stop()).toBe(0);
    const ports = ['--api-port', portOf(ready.api_url), '--agent-port', portOf(ready.agent_address)];
    ({ server, ready } = await sandbox.serve(ports));
    await until(async () => (await agents()).every(({ connected }) => connected), 'all agents are back');
    await stand('on_trial', 'in_sync', 'in_sync', 'in_sync');
    expect(contents()).toEqual(['two', 'one', 'one', 'one']);
  });

  it('is ended by an apply without the file, which says so', async () => {
    const planned = await sandbox.json<RunResult>(['plan', 'web-01']);
    expect(planned.ends_trial).toEqual(['site']);
    const screen = await onTerminal(['apply', 'web-01'], [[/Apply this to web-01\?/, 'y\r']]);
    expect(screen).toContain('This ends the trial of module site on web-01.');
    await stand('in_sync', 'in_sync', 'in_sync', 'in_sync');
    expect(contents()).toEqual(['one', 'one', 'one', 'one']);
  });
});

describe('publishing', () => {
  it('needs a flag without a terminal where machines get it by themselves', async () => {
    const file = site('three');
    for (const more of [[], ['--yes']]) {
      const refused = await sandbox.orch(['module', 'publish', file, ...more]);
      expect(refused.status).not.toBe(0);
      expect(refused.stderr).toContain('lets the orchestrator apply to 4 other machines by itself');
      expect(refused.stderr).toContain('--allow-automatic-applies');
      const applied = await sandbox.orch(['apply', 'web-01', '-f', file, '--yes', '--publish']);
      expect(applied.stderr).toContain('--allow-automatic-applies');
    }
    expect(contents()).toEqual(['one', 'one', 'one', 'one']);
    expect(await revisions()).toHaveLength(1);
  });

  it('shows whom what was tried reaches, and reaches it after a yes', async () => {
    await sandbox.json(['apply', 'web-02', '-f', site('three'), '--yes']);
    const no = await onTerminal(['module', 'publish', '--from', 'web-02'], [[/Publish module site\?/, 'n\r']]);
    expect(no).toContain('Publishing module site reaches 3 machines:');
    expect(no).toContain('at once: web-01, web-03, web-04');
    expect(no).toContain('assignment all (enforce) gives it to 4 machines');
    expect(contents()).toEqual(['one', 'three', 'one', 'one']);
    await onTerminal(['module', 'publish', '--from', 'web-02', 'site'], [[/Publish module site\?/, 'y\r']]);
    await until(() => contents().every((content) => content === 'three'), 'every machine has it');
    await stand('in_sync', 'in_sync', 'in_sync', 'in_sync');
    expect((await shown('web-02')).trial).toBeNull();
    expect(await revisions()).toHaveLength(2);
  });

  it('does not replace a revision that came after the trial began, unseen', async () => {
    await sandbox.json(['apply', 'web-01', '-f', site('mine'), '--yes']);
    await sandbox.json(['module', 'publish', site('theirs'), '--allow-automatic-applies']);
    const refused = await sandbox.orch(['module', 'publish', '--from', 'web-01', '--yes', '--allow-automatic-applies']);
    expect(refused.status).toBe(6);
    expect(refused.stderr).toContain('has changed on the orchestrator since the trial began');
    expect((await sandbox.json<Module>(['module', 'show', 'site'])).content).toContain('theirs');
    await until(
      () =>
        contents()
          .slice(1)
          .every((content) => content === 'theirs'),
      'the others have theirs',
    );
    expect(contentOf('web-01')).toBe('mine');
  });

  it('is one command for a module that no other machine follows', async () => {
    const file = sandbox.path('own.orch.yaml');
    const path = sandbox.path('machines', 'own');
    writeFileSync(
      file,
      `name: own\nsupports: [{platform: linux}]\nresources:\n  - resource: {file-unix: {path: "${path}", content: "1\\n"}}\n`,
    );
    const applied = await sandbox.orch(['apply', 'web-03', '-f', file, '--yes']);
    expect(applied.status).toBe(0);
    expect(applied.stdout).toContain('Published module own.');
    expect((await sandbox.json<Module>(['module', 'show', 'own'])).revision).toBe(1);
  });
});

describe('an apply that removes everything', () => {
  it('asks with the number of removals, and the answer suffices', async () => {
    await sandbox.json(['apply', 'web-03', '--yes', '--allow-removals', '9']);
    expect(await sandbox.orch(['assignments', 'remove', 'all', '--yes'])).toMatchObject({ status: 0 });
    const screen = await onTerminal(['apply', 'web-03'], [[/Apply it, with 1 removal\?/, 'y\r']]);
    expect(screen).toContain('Applied: ');
    expect(existsSync(place('web-03'))).toBe(false);
    const refusal = /this apply would remove everything that is managed on web-04/;
    const few = await onTerminal(['apply', 'web-04', '--allow-removals', '0'], [[refusal, '']]);
    expect(few).not.toContain('Apply it');
  });
});
