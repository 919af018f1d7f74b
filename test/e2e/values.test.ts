/** Inputs and value sets with real processes: a directory that is synced, machines that follow their values, and `--local`. */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import { OPEN } from '../../src/language/parse-expression.js';
import { Sandbox, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';

const sandbox = new Sandbox();
const machine = (name: string) => sandbox.path('machine', name);
const site = (name: string) => sandbox.path('site', name);
const content = (name: string) => (existsSync(machine(name)) ? readFileSync(machine(name), 'utf8').trim() : null);

const MODULE = (inputs = '') => `name: web
supports: [{platform: linux}]
inputs:
  workers: {type: integer, default: 4, minimum: 1}
  domain: {type: string}
  sites: {type: map, merge: true, of: {type: object, fields: {root: {type: string, default: /srv}}}, default: {}}
  key: {type: string, secret: true, optional: true}
${inputs}resources:
  - file-unix: {path: ${machine('workers')}, content: "${OPEN} inputs.workers }} ${OPEN} inputs.domain }}"}
  - for_each: inputs.sites
    file-unix: {path: "${machine('')}/${OPEN} each.key }}.conf", content: "${OPEN} each.value.root }}"}
  - if: inputs.key != nil
    file-unix: {path: ${machine('key')}, mode: "0600", content: "${OPEN} inputs.key }}"}
`;

const PROD = (workers: number, more = '') => `values:
  - when: {}
    set: {web: {domain: a.net, sites: {shop: {}}${more}}}
  - when: {tag.env: prod}
    set: {web: {workers: ${workers}, sites: {docs: {root: /srv/docs}}, key: {secret: KEY}}}
`;

const write = (name: string, text: string) => writeFileSync(site(name), text);
const sync = (...more: readonly string[]) => sandbox.orch(['sync', sandbox.path('site'), ...more]);
const ALLOWED = '--allow-automatic-applies';
const shown = () => sandbox.json<Agent>(['agents', 'show', 'web-01']);

beforeAll(async () => {
  for (const name of ['machine', 'machine/own', 'site']) mkdirSync(sandbox.path(name), { recursive: true });
  expect(await sandbox.orch(['operator', 'init'])).toMatchObject({ status: 0 });
  const { ready } = await sandbox.serve();
  const url = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(['profile', 'create', 'test', ...url])).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  const key = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent')];
  sandbox.start(['agent', 'connect', ready.agent_address, ...key]);
  const agents = () => sandbox.json<Agent[]>(['agents', 'list']);
  await until(async () => (await agents()).length === 1, 'the agent waits');
  await sandbox.json(['agents', 'approve', (await agents())[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
  write('web.orch.yaml', MODULE());
  write('assignments.yaml', 'assignments:\n  - {name: web, modules: [web], selector: platform=linux, mode: enforce}\n');
});
afterAll(() => sandbox.dispose());

describe('a directory with a module and its values', () => {
  it('is refused as a whole while a machine has no value for an input, or a value is wrong', async () => {
    const missing = await sync();
    expect(missing).toMatchObject({ status: 1 });
    expect(missing.stderr).toContain('input "domain" has no value');
    write('prod.values.yaml', PROD(0, ', wrkers: 3'));
    const wrong = await sync();
    expect(wrong).toMatchObject({ status: 1 });
    expect(wrong.stderr).toMatch(
      /prod\.values\.yaml:3:\d+: error: module "web" has no input "wrkers"; did you mean "workers"\?/,
    );
    expect(wrong.stderr).toMatch(/prod\.values\.yaml:5:\d+: error: input "workers" must be at least 1, but this is 0/);
    expect((await sandbox.orch(['values', 'list', '-o', 'name'])).stdout.trim()).toBe('');
  });

  it('gives machines the values of their tags, and secrets as secrets', async () => {
    expect(await sandbox.orch(['secrets', 'set', 'KEY', '-'], { input: 'hunter2' })).toMatchObject({ status: 0 });
    write('prod.values.yaml', PROD(16));
    const planned = await sync('--plan');
    expect(planned.stdout).toContain('Plan: 3 to create');
    expect(await sync(ALLOWED)).toMatchObject({ status: 0 });
    await until(async () => content('workers') === '4 a.net', 'the machine has the values of all machines');
    expect([content('shop.conf'), content('docs.conf'), content('key')]).toEqual(['/srv', null, null]);
    await sandbox.json(['agents', 'tag', 'web-01', 'env=prod']);
    await until(async () => content('workers') === '16 a.net', 'the machine has the values of its tag');
    await until(async () => (await shown()).standing === 'in_sync', 'it is in sync');
    expect([content('shop.conf'), content('docs.conf'), content('key')]).toEqual(['/srv', '/srv/docs', 'hunter2']);
    const operations = await sandbox.orch(['ops', 'show', (await newest()) ?? '', '-o', 'json']);
    expect(operations.stdout).not.toContain('hunter2');
    expect(await sandbox.json(['secrets', 'show', 'KEY'])).toMatchObject({ usage: { modules: [], values: ['prod'] } });
  });

  it('explains a value, and shows what another one would change', async () => {
    const { stdout } = await sandbox.orch(['explain', 'web-01', 'web.workers']);
    expect(stdout).toBe('input web.workers on web-01\nValue  16\nFrom   prod.values.yaml:5 (tag.env=prod): 16\n');
    write('prod.values.yaml', PROD(32));
    const impact = await sandbox.orch(['impact', site('prod.values.yaml')]);
    expect(impact.stdout).toContain('+32 a.net');
    const refused = await sandbox.orch(['values', 'push', site('prod.values.yaml')]);
    expect(refused).toMatchObject({ status: 64 });
    expect(refused.stderr).toContain('value set prod lets the orchestrator apply to 1 other machine by itself');
    const pushed = await sandbox.orch(['values', 'push', site('prod.values.yaml'), ALLOWED]);
    expect(pushed).toMatchObject({ status: 0, stdout: 'Stored revision 2 of prod.\n' });
    expect(pushed.stderr).toContain('at once: web-01');
    await until(async () => content('workers') === '32 a.net', 'the machine has the new value');
  });

  it('is edited in the editor of the operator, again after a mistake', async () => {
    const editor = sandbox.path('editor');
    // Makes a mistake at first, and mends it.
    const mend = 'grep -q whn "$1" && exec sed -i "s/whn/when/; s/32/31/" "$1"';
    writeFileSync(editor, `#!/bin/sh\n${mend}\nexec sed -i s/when/whn/ "$1"\n`);
    chmodSync(editor, 0o755);
    const { env, root, program } = sandbox;
    const argv = [process.execPath, program, 'values', 'edit', 'prod'];
    const pty = new Pty(argv, { cwd: root, env: { ...env, VISUAL: editor, EDITOR: editor } });
    onTestFinished(() => pty.kill());
    await pty.displays(/unknown key "whn"; did you mean "when"\?/);
    pty.write('\r');
    await pty.displays(/Store 1 value set: prod\?/);
    await pty.displays(/at once: web-01/);
    pty.write('y\r');
    await pty.displays(/^Stored revision 3 of prod\./);
    await until(async () => content('workers') === '31 a.net', 'the machine has the new value');
  });

  it('may change a module and its values together', async () => {
    write('web.orch.yaml', MODULE('  level: {type: string, default: info}\n'));
    write('prod.values.yaml', PROD(33, ', level: debug'));
    const done = await sync(ALLOWED);
    expect(done).toMatchObject({ status: 0 });
    expect(done.stdout).toContain('Synced: 2 updated; 1 unchanged.');
    await until(async () => content('workers') === '33 a.net', 'the machine has the new values');
  });

  it('goes with --prune, which is refused while a machine would lose what it needs', async () => {
    rmSync(site('prod.values.yaml'));
    const refused = await sync('--prune', '--yes', ALLOWED);
    expect(refused).toMatchObject({ status: 1 });
    expect(refused.stderr).toContain('input "domain" has no value');
    expect((await sandbox.orch(['values', 'list', '-o', 'name'])).stdout).toBe('prod\n');
    write('web.orch.yaml', MODULE().replace('domain: {type: string}', 'domain: {type: string, default: b.net}'));
    expect(await sync('--prune', '--yes', ALLOWED)).toMatchObject({ status: 0 });
    await until(async () => content('workers') === '4 b.net', 'the machine has the defaults');
    await until(async () => content('docs.conf') === null, 'what the values had made is removed');
  });
});

describe('a template with an engine', () => {
  const PAGE = (line: string) => `name: page
supports: [{platform: linux}]
inputs:
  sites: {type: map, of: {type: object, fields: {port: {type: integer, optional: true}}}, default: {shop: {port: 80}, docs: {}}}
templates:
  - id: page
    engine: liquid
    content: |
      {% for site in inputs.sites %}
      {% if site.value.port != nil %}
      ${line}
      {% endif %}
      {% endfor %}
      {{ tags.env | default: "none" }} {{ secrets.TOKEN }}
resources:
  - file-unix: {path: ${machine('page')}, mode: "0600", template: page}
`;

  it('writes what its loops and conditions give, and keeps its secrets', async () => {
    const file = sandbox.path('page.orch.yaml');
    writeFileSync(file, PAGE('{{ site.key }} {{ site.value.prt }}'));
    const wrong = await sandbox.orch(['module', 'publish', file]);
    expect(wrong).toMatchObject({ status: 1 });
    expect(wrong.stderr).toContain('page.orch.yaml:11:22: error: site.value has no field "prt"; did you mean "port"?');
    writeFileSync(file, PAGE('{{ site.key }} {{ site.value.port }}'));
    expect(await sandbox.orch(['module', 'publish', file])).toMatchObject({ status: 0 });
    const refused = await sandbox.orch(['plan', 'web-01', '-m', 'page']);
    expect(refused.stderr).toContain('the secret "TOKEN" does not exist (line 6 of the template "page")');
    expect(await sandbox.orch(['secrets', 'set', 'TOKEN', '-'], { input: 'wonderland' })).toMatchObject({ status: 0 });
    const planned = await sandbox.orch(['plan', 'web-01', '-m', 'page']);
    expect(planned.stdout).toContain('shop 80');
    expect(planned.stdout).toMatch(/prod ‹secret TOKEN #[0-9a-f]{4}›/);
    expect(await sandbox.orch(['apply', 'web-01', '-m', 'page', '--yes'])).toMatchObject({ status: 0 });
    expect(content('page')).toBe('shop 80\nprod wonderland');
    expect(await sandbox.json(['secrets', 'show', 'TOKEN'])).toMatchObject({ usage: { modules: ['page'] } });
  });
});

const newest = async (): Promise<string | undefined> =>
  (await sandbox.orch(['ops', 'list', '-o', 'name'])).stdout.split('\n')[0];

describe('--local', () => {
  const local = (verb: string, ...more: readonly string[]) =>
    sandbox.orch([verb, '--local', '--data-dir', sandbox.path('data'), '-f', site('own.orch.yaml'), ...more]);

  it('takes value sets and single values, and names what is wrong', async () => {
    write('own.orch.yaml', MODULE().replaceAll(sandbox.path('machine'), sandbox.path('machine', 'own')));
    write('own.values.yaml', 'values: [{when: {tag.env: x}, set: {web: {domain: c.net, workers: 5}}}]\n');
    const missing = await local('plan');
    expect(missing).toMatchObject({ status: 1 });
    expect(missing.stderr).toContain('--set MODULE:INPUT=VALUE');
    const given = ['--values', site('own.values.yaml'), '--tag', 'env=x'];
    expect(await local('apply', '--yes', ...given)).toMatchObject({ status: 0 });
    expect(content('own/workers')).toBe('5 c.net');
    const set = ['--set', 'web:workers=6', '--set', 'web:sites={a: {root: /a}}'];
    expect(await local('apply', '--yes', ...given, ...set)).toMatchObject({ status: 0 });
    expect([content('own/workers'), content('own/a.conf')]).toEqual(['6 c.net', '/a']);
    expect((await local('plan', ...given, '--set', 'web:workers=x')).stderr).toContain(
      '"workers" must be a whole number',
    );
    expect((await local('plan', ...given, '--set', 'web:key=x')).stderr).toContain('the input is a secret');
    expect((await local('plan', ...given, '--set', 'other:a=x')).stderr).toContain('there is no module "other"');
    const stray = await sandbox.orch(['drift', 'web-01', '--set', 'web:workers=6']);
    expect(stray).toMatchObject({ status: 64 });
    expect(stray.stderr).toContain('--set goes with --local');
  });
});
