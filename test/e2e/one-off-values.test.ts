/** Values of a run of its own with real processes: plans, applies, saved plans and rollouts, and what enforce does afterwards. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { AuditEvent } from '../../src/contract/audit.js';
import { OPEN } from '../../src/language/parse-expression.js';
import { Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
const machine = (name: string) => sandbox.path('machine', name);
const file = (name: string) => sandbox.path(name);
const content = (name: string) => (existsSync(machine(name)) ? readFileSync(machine(name), 'utf8').trim() : null);

const moduleText = (more = '') => `name: web
supports: [{platform: linux}]
inputs:
  workers: {type: integer, default: 4, minimum: 1}
  key: {type: string, secret: true, optional: true}
resources:
  - file-unix: {path: ${machine('workers')}, content: "${OPEN} inputs.workers }}${more}"}
`;

const orch = (...argv: readonly string[]) => sandbox.orch(argv);
const shown = () => sandbox.json<Agent>(['agents', 'show', 'web-01']);
const newest = async () => (await orch('ops', 'list', '-o', 'name')).stdout.split('\n')[0] ?? '';

beforeAll(async () => {
  mkdirSync(sandbox.path('machine'), { recursive: true });
  expect(await orch('operator', 'init')).toMatchObject({ status: 0 });
  const { ready } = await sandbox.serve();
  const url = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await orch('profile', 'create', 'test', ...url)).toMatchObject({ status: 0 });
  expect(await orch('profile', 'use', 'test')).toMatchObject({ status: 0 });
  const key = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent')];
  sandbox.start(['agent', 'connect', ready.agent_address, ...key]);
  const agents = () => sandbox.json<Agent[]>(['agents', 'list']);
  await until(async () => (await agents()).length === 1, 'the agent waits');
  await sandbox.json(['agents', 'approve', (await agents())[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
  writeFileSync(file('web.orch.yaml'), moduleText());
  expect(await orch('module', 'publish', file('web.orch.yaml'))).toMatchObject({ status: 0 });
  const create = ['assignments', 'create', 'web', '-m', 'web', '--selector', 'platform=linux', '--mode', 'enforce'];
  expect(await orch(...create)).toMatchObject({ status: 0 });
  await until(async () => content('workers') === '4', 'the machine has the stored values');
});
afterAll(() => sandbox.dispose());

describe('orch plan and orch apply with --set and --values', () => {
  it('show and apply the values, and enforce leaves the machine alone until an apply without them', async () => {
    const plan = await orch('plan', 'web-01', '--set', 'web:workers=8');
    expect(plan).toMatchObject({ status: 0 });
    expect(plan.stdout).toContain('+8');
    expect(plan.stdout).toContain('with values for this apply alone: web.workers');
    expect(content('workers')).toBe('4');
    const applied = await orch('apply', 'web-01', '--set', 'web:workers=8', '--yes');
    expect(applied).toMatchObject({ status: 0 });
    expect(applied.stderr).toContain('are for this apply alone');
    expect(content('workers')).toBe('8');
    const operation = await newest();
    await until(async () => (await shown()).automation_stopped !== null, 'automatic applies have stopped');
    const agent = await shown();
    expect(agent).toMatchObject({ standing: 'behind', automation_stopped: { code: 'withdrawn' } });
    expect(agent.standing_reason).toBe(
      `module web; applied with values of its own: web.workers, operation ${operation}`,
    );
    const explained = await orch('explain', 'web-01', 'web.workers');
    expect(explained.stdout).toContain(`Applied  8, by --set web:workers of operation ${operation}`);
    expect((await orch('ops', 'show', operation)).stdout).toContain('Given by      --set web:workers=8');
    expect(await sandbox.json(['ops', 'show', operation])).toMatchObject({
      value_inputs: ['web.workers'],
      values: { set: ['web:workers=8'], files: [] },
    });
    expect((await orch('state', 'web-01')).stdout).toContain('Own values       web.workers');
    expect(await sandbox.json(['drift', 'web-01'])).toMatchObject({ status: 'in_sync' });
    const { events } = await sandbox.json<{ readonly events: readonly AuditEvent[] }>([
      ...['audit', '--type', 'state.apply_started', '--limit', '1'],
    ]);
    expect(events).toMatchObject([{ metadata: { value_inputs: ['web.workers'] } }]);
    expect(content('workers')).toBe('8');
    expect(await orch('apply', 'web-01', '--yes')).toMatchObject({ status: 0 });
    expect(content('workers')).toBe('4');
    await until(async () => (await shown()).standing === 'in_sync', 'the machine is in sync');
  });

  it('takes a value set, a file of a module and a saved plan with them', async () => {
    writeFileSync(file('mine.values.yaml'), 'values: [{when: {agent: web-01}, set: {web: {workers: 9}}}]\n');
    writeFileSync(file('web.orch.yaml'), moduleText('!'));
    const given = ['-f', file('web.orch.yaml'), '--values', file('mine.values.yaml')];
    const out = file('mine.orchplan');
    expect(await orch('plan', 'web-01', ...given, '--out', out)).toMatchObject({ status: 0 });
    writeFileSync(file('mine.values.yaml'), 'values: []\n');
    expect(await orch('apply', out, '--yes')).toMatchObject({ status: 0 });
    expect(content('workers')).toBe('9!');
    await until(async () => (await shown()).standing === 'behind', 'the machine is behind');
    // The apply has published the file, because no other machine follows the module.
    expect(await sandbox.json(['module', 'show', 'web'])).toMatchObject({ revision: 2 });
    await until(async () => (await shown()).automation_stopped !== null, 'automatic applies have stopped');
    expect(content('workers')).toBe('9!');
    const stale = file('stale.orchplan');
    expect(await orch('plan', 'web-01', '--set', 'web:workers=10', '--out', stale)).toMatchObject({ status: 0 });
    expect(await orch('apply', 'web-01', '--yes')).toMatchObject({ status: 0 });
    expect(await orch('apply', stale, '--yes')).toMatchObject({ status: 6 });
    expect(content('workers')).toBe('4!');
  });

  it('goes with a rollout, which shows them', async () => {
    const begun = await orch('apply', '--assignment', 'web', '--set', 'web:workers=11', '--yes');
    expect(begun).toMatchObject({ status: 0 });
    expect(content('workers')).toBe('11!');
    const [id = ''] = (await orch('rollouts', '-o', 'name')).stdout.split('\n');
    const { stdout } = await orch('rollouts', 'show', id);
    expect(stdout).toContain('Own values    web.workers');
    expect(stdout).toContain('Given by      --set web:workers=11');
    await until(async () => (await shown()).automation_stopped !== null, 'automatic applies have stopped');
    expect(await orch('apply', '--assignment', 'web', '--yes')).toMatchObject({ status: 0 });
    expect(content('workers')).toBe('4!');
  });

  it.each([
    [['--set', 'wob:workers=1'], 1, 'orch: --set wob:workers: there is no module "wob"; did you mean "web"?'],
    [['--set', 'web:wrkers=1'], 1, 'module "web" has no input "wrkers"; did you mean "workers"?'],
    [['--set', 'web:workers=0'], 1, 'input "workers" must be at least 1, but this is 0'],
    [['--set', 'web:workers=many'], 1, 'input "workers" must be a whole number'],
    [['--set', 'web:key=hunter2'], 1, 'the input is a secret, and an apply brings no values of secret inputs with it'],
    [['--set', 'workers=1'], 1, 'the form is MODULE:INPUT=VALUE'],
    [['--set', 'web:workers=1', '--to', '01JQ2Z6T0V5X8Y4M3N7P9R1S2T'], 64, '--to excludes --set'],
  ])('refuses %j', async (given, status, message) => {
    for (const verb of ['plan', 'apply']) {
      const ran = await orch(verb, 'web-01', ...given, ...(verb === 'apply' ? ['--yes'] : []));
      expect(ran).toMatchObject({ status });
      expect(ran.stderr).toContain(message);
    }
    expect(content('workers')).toBe('4!');
  });
});

describe('the history of a value set', () => {
  it('has the texts of pushes, also after a removal', async () => {
    const text = (workers: number) => `values: [{when: {tag.env: none}, set: {web: {workers: ${workers}}}}]\n`;
    const path = file('prod.values.yaml');
    for (const workers of [5, 6]) {
      writeFileSync(path, text(workers));
      expect(await orch('values', 'push', path, '--yes')).toMatchObject({ status: 0 });
    }
    expect((await orch('values', 'diff', path, '--revision', '1')).stdout).toContain(
      '+values: [{when: {tag.env: none}',
    );
    expect(await orch('values', 'remove', 'prod', '--yes')).toMatchObject({ status: 0 });
    expect((await orch('values', 'revisions', 'prod')).stdout).toMatch(/ {7}3 .* removed\n {7}2 /);
    expect((await orch('values', 'show', 'prod', '--revision', '1')).stdout).toContain(text(5));
    const gone = await orch('values', 'show', 'prod');
    expect(gone.stderr).toContain('there is no value set "prod"; it was removed');
    expect(gone.stderr).toContain('orch values revisions prod');
  });
});
