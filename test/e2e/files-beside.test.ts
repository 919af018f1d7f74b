/** Files beside modules with real processes: applies, syncs, saved plans, and `--local`. */
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { Module } from '../../src/contract/modules.js';
import type { OperationDetail } from '../../src/contract/operations.js';
import { Sandbox, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';

const sandbox = new Sandbox();
const site = (name: string) => sandbox.path('site', name);
const machine = (name: string) => sandbox.path('machine', name);
const written = (name: string) => (existsSync(machine(name)) ? readFileSync(machine(name)) : null);
const NODE = 'web-01';
const FILE = () => ['-f', site('web.orch.yaml')];
/** More than one part of an upload. */
const first = randomBytes(2_500_000);
const second = randomBytes(1_200_000);

const MODULE = () => `name: web
supports: [{platform: linux}]
inputs: {hosts: {type: list, of: {type: string}, default: [a, b]}}
resources:
  - file-unix: {path: ${machine('app.bin')}, source: files/app.bin, mode: "0755"}
  - file-unix: {path: ${machine('hosts')}, template: files/hosts.liquid}
`;

const orch = (...args: readonly string[]) => sandbox.orch(args);
const apply = (...more: readonly string[]) => orch('apply', NODE, ...more, '--yes');

beforeAll(async () => {
  for (const name of ['machine', 'site', 'site/files']) mkdirSync(sandbox.path(name), { recursive: true });
  writeFileSync(site('web.orch.yaml'), MODULE());
  writeFileSync(site('files/app.bin'), first);
  writeFileSync(site('files/hosts.liquid'), '{% for host in inputs.hosts %}\n{{ host }}\n{% endfor %}\n');
  expect(await orch('operator', 'init')).toMatchObject({ status: 0 });
  const { ready } = await sandbox.serve();
  const url = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await orch('profile', 'create', 'test', ...url)).toMatchObject({ status: 0 });
  expect(await orch('profile', 'use', 'test')).toMatchObject({ status: 0 });
  const key = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent')];
  sandbox.start(['agent', 'connect', ready.agent_address, ...key]);
  const agents = () => sandbox.json<Agent[]>(['agents', 'list']);
  await until(async () => (await agents()).length === 1, 'the agent waits');
  await sandbox.json(['agents', 'approve', (await agents())[0]?.node_id ?? '', '--name', NODE, '--yes']);
});
afterAll(() => sandbox.dispose());

describe('a module with files', () => {
  it('is planned, and what the plan shows is applied, byte for byte', async () => {
    const planned = await orch('plan', NODE, ...FILE());
    expect(planned.stdout).toMatch(/content {2}files\/app\.bin, SHA-256 [0-9a-f]{12}…/);
    expect(planned.stdout).toContain('Plan: 2 to create.');
    expect(written('app.bin')).toBeNull();
    const applied = await apply(...FILE());
    expect(applied).toMatchObject({ status: 0 });
    expect(applied.stdout).toContain('Applied: 2 created.');
    expect(written('app.bin')?.equals(first)).toBe(true);
    expect(written('hosts')?.toString()).toBe('a\nb\n');
    expect((await apply(...FILE())).stdout).toContain('2 unchanged');
    // The agent keeps no copy.
    expect(readdirSync(sandbox.path('agent', 'content'))).toEqual([]);
  });

  it('drifts when the file on the machine changes, and is repaired', async () => {
    writeFileSync(machine('app.bin'), 'changed by hand');
    const drift = await orch('drift', NODE);
    expect(drift.stdout).toMatch(/content {2}15 bytes, SHA-256 [0-9a-f]{12}… -> files\/app\.bin, SHA-256/);
    expect(await apply('-m', 'web')).toMatchObject({ status: 0 });
    expect(written('app.bin')?.equals(first)).toBe(true);
  });

  it('is another revision when a file changes, which a sync shows and stores', async () => {
    expect((await orch('sync', sandbox.path('site'), '--plan')).stdout).toContain('Plan: nothing to do');
    writeFileSync(site('files/app.bin'), second);
    const planned = await orch('sync', sandbox.path('site'), '--plan');
    expect(planned.stdout).toContain('files/app.bin');
    expect(planned.stdout).toContain('Plan: 1 to update');
    expect(await orch('sync', sandbox.path('site'), '--yes')).toMatchObject({ status: 0 });
    expect(await sandbox.json<Agent>(['agents', 'show', NODE])).toMatchObject({ standing: 'behind' });
    expect(await apply('-m', 'web')).toMatchObject({ status: 0 });
    expect(written('app.bin')?.equals(second)).toBe(true);
    const { files = {} } = await sandbox.json<Module>(['module', 'show', 'web']);
    expect(Object.keys(files)).toEqual(['files/app.bin', 'files/hosts.liquid']);
  });

  it('goes back to the files of an earlier apply', async () => {
    const { operations } = await sandbox.json<{ operations: OperationDetail[] }>(['ops', 'list']);
    const { operation_id: oldest = '' } = operations.at(-1) ?? {};
    expect(await apply('--to', oldest)).toMatchObject({ status: 0 });
    expect(written('app.bin')?.equals(first)).toBe(true);
  });

  it('is in a saved plan, which needs its files no more', async () => {
    const plan = sandbox.path('next.orchplan');
    expect(await orch('plan', NODE, ...FILE(), '--out', plan)).toMatchObject({ status: 0 });
    rmSync(site('files'), { recursive: true });
    expect(await orch('apply', plan, '--yes')).toMatchObject({ status: 0 });
    expect(written('app.bin')?.equals(second)).toBe(true);
    mkdirSync(site('files'));
  });

  it('names a file that cannot be used, and nothing is done', async () => {
    const problem = async () => (await orch('plan', NODE, ...FILE())).stderr;
    expect(await problem()).toContain('web.orch.yaml:5:');
    expect(await problem()).toContain('error: the file "files/app.bin" does not exist beside the module');
    symlinkSync('/etc/hostname', site('files/app.bin'));
    writeFileSync(site('files/hosts.liquid'), '{% if inputs.hosts %}{% endif %}');
    const both = await problem();
    expect(both).toContain('the file "files/app.bin" is a link that leads out of the directory of the module');
    expect(both).toMatch(/error: files\/hosts\.liquid:1:\d+: /);
    rmSync(site('files/app.bin'));
    mkdirSync(site('files/app.bin'));
    expect(await problem()).toContain('the file "files/app.bin" is a directory, not a file');
    rmSync(site('files/app.bin'), { recursive: true });
    writeFileSync(site('files/app.bin'), first);
    writeFileSync(site('files/hosts.liquid'), 'none\n');
  });
});

describe('a module with a directory', () => {
  const FILES = () => ['-f', site('pages.orch.yaml')];
  const page = (name: string) => site(`files/pages/${name}`);

  it('is sent with everything in it, and shows what is in it', async () => {
    mkdirSync(page('css'), { recursive: true });
    writeFileSync(page('index.html'), first);
    writeFileSync(page('css/a.css'), 'body');
    writeFileSync(page('run'), '#!/bin/sh\n', { mode: 0o755 });
    const body = `{path: ${machine('pages')}, source: files/pages}`;
    const text = `name: pages\nsupports: [{platform: linux}]\nresources:\n  - directory-unix: ${body}\n`;
    writeFileSync(site('pages.orch.yaml'), text);
    expect((await orch('plan', NODE, ...FILES(), '-m', 'web')).stdout).toContain('Plan: 5 to create');
    expect(await apply(...FILES(), '-m', 'web')).toMatchObject({ status: 0 });
    expect(written('pages/index.html')?.equals(first)).toBe(true);
    expect(statSync(machine('pages/run')).mode & 0o777).toBe(0o755);
    expect(await orch('sync', sandbox.path('site'), '--yes')).toMatchObject({ status: 0 });
    const { files = {} } = await sandbox.json<Module>(['module', 'show', 'pages']);
    expect(Object.keys(files).sort()).toEqual([
      'files/pages/',
      'files/pages/css/a.css',
      'files/pages/index.html',
      'files/pages/run',
    ]);
    expect((await apply('-m', 'pages', '-m', 'web')).stdout).toContain('5 unchanged');
    expect((await orch('impact', site('pages.orch.yaml'))).stdout).toContain('0 to change, 1 the same');
  });

  it('is pulled as it was published, and never over other content', async () => {
    const pulled = (name: string) => sandbox.path('pulled', name);
    const pull = () => orch('module', 'pull', 'pages', 'web', '--out', pulled(''));
    expect(await pull()).toMatchObject({ status: 0, stdout: expect.stringContaining('Wrote revision 1 of pages') });
    for (const name of ['pages.orch.yaml', 'web.orch.yaml', 'files/pages/index.html', 'files/app.bin']) {
      expect(readFileSync(pulled(name)).equals(readFileSync(site(name)))).toBe(true);
    }
    expect(statSync(pulled('files/pages/run')).mode & 0o100).toBe(0o100);
    expect((await orch('sync', pulled(''), '--plan')).stdout).toContain('Plan: nothing to do');
    expect((await pull()).stdout).toContain('Unchanged');
    rmSync(pulled('web.orch.yaml'));
    writeFileSync(pulled('files/pages/css/a.css'), 'mine');
    const refused = await pull();
    expect(refused).toMatchObject({ status: 64, stdout: '' });
    expect(refused.stderr).toContain(
      'files/pages/css/a.css is already there with other content, so nothing was written',
    );
    expect(existsSync(pulled('web.orch.yaml'))).toBe(false);
    rmSync(pulled('files'), { recursive: true });
    symlinkSync(sandbox.path('elsewhere'), pulled('files'));
    mkdirSync(sandbox.path('elsewhere'));
    expect((await pull()).stderr).toContain('a link on the way leads out of the directory');
    expect(readdirSync(sandbox.path('elsewhere'))).toEqual([]);
  });

  it('is edited in the editor of the operator, with its files as they were', async () => {
    const editor = sandbox.path('editor');
    // Makes a mistake at first, and mends it.
    const mend = 'grep -q suports "$1" && exec sed -i "s/suports/supports/; s/^resources/# edited\\nresources/" "$1"';
    writeFileSync(editor, `#!/bin/sh\n${mend}\nexec sed -i s/supports/suports/ "$1"\n`, { mode: 0o755 });
    const { env, root, program } = sandbox;
    const argv = [process.execPath, program, 'module', 'edit', 'pages'];
    const pty = new Pty(argv, { cwd: root, env: { ...env, VISUAL: editor, EDITOR: editor } });
    onTestFinished(() => pty.kill());
    await pty.displays(/unknown key "suports"/);
    pty.write('\r');
    await pty.displays(/Publish module pages\?/);
    pty.write('y\r');
    await pty.displays(/^Published revision 2 of pages/);
    const { content, files = {} } = await sandbox.json<Module>(['module', 'show', 'pages']);
    expect(content).toContain('# edited\nresources');
    expect(Object.keys(files)).toHaveLength(4);
    expect((await apply('-m', 'pages', '-m', 'web')).stdout).toContain('everything was as it should be');
    expect(await orch('module', 'publish', site('pages.orch.yaml'), '--yes')).toMatchObject({ status: 0 });
  });

  it('is not edited over a change that was made meanwhile', async () => {
    const plain = (comment: string) => `name: plain\nsupports: [{}]\nresources: [] # ${comment}\n`;
    for (const name of ['one', 'two']) writeFileSync(sandbox.path(`${name}.orch.yaml`), plain(name));
    expect(await orch('module', 'publish', sandbox.path('one.orch.yaml'), '--yes')).toMatchObject({ status: 0 });
    const editor = sandbox.path('slow-editor');
    const { env, root, program } = sandbox;
    const other = `'${process.execPath}' '${program}' module publish '${sandbox.path('two.orch.yaml')}' --yes`;
    writeFileSync(editor, `#!/bin/sh\n${other} >/dev/null && sed -i s/one/mine/ "$1"\n`, { mode: 0o755 });
    const argv = [process.execPath, program, 'module', 'edit', 'plain'];
    const pty = new Pty(argv, { cwd: root, env: { ...env, VISUAL: editor, EDITOR: editor } });
    onTestFinished(() => pty.kill());
    await pty.displays(/which is not the one to be replaced/);
    const kept = /your text is kept in (\S+)/.exec(pty.lines.join('\n'))?.[1] ?? '';
    expect(readFileSync(kept, 'utf8')).toBe(plain('mine'));
    rmSync(dirname(kept), { recursive: true });
    expect((await sandbox.json<Module>(['module', 'show', 'plain'])).content).toBe(plain('two'));
    expect(await orch('module', 'remove', 'plain', '--yes')).toMatchObject({ status: 0 });
  });

  it('is another revision when a file goes or becomes a program, and the machine follows', async () => {
    expect((await orch('sync', sandbox.path('site'), '--plan')).stdout).toContain('Plan: nothing to do');
    rmSync(page('css'), { recursive: true });
    chmodSync(page('index.html'), 0o755);
    const diff = await orch('module', 'diff', site('pages.orch.yaml'));
    expect(diff.stdout).toContain('~ files/pages/');
    expect(diff.stdout).toContain('- files/pages/css/a.css');
    expect(await orch('sync', sandbox.path('site'), '--yes')).toMatchObject({ status: 0 });
    const plan = sandbox.path('pages.orchplan');
    const planned = await orch('plan', NODE, '-m', 'pages', '-m', 'web', '--out', plan);
    expect(planned.stdout).toContain('1 to update, 2 to remove');
    rmSync(page(''), { recursive: true });
    expect(await orch('apply', plan, '--yes')).toMatchObject({ status: 0 });
    expect(written('pages/css/a.css')).toBeNull();
    expect(statSync(machine('pages/index.html')).mode & 0o777).toBe(0o755);
    rmSync(site('pages.orch.yaml'));
  });
});

describe('--local', () => {
  const local = (verb: string, ...more: readonly string[]) =>
    orch(verb, '--local', '--data-dir', sandbox.path('local'), ...FILE(), ...more);

  it('takes the files beside the module, and sees when one changes', async () => {
    rmSync(machine(''), { recursive: true });
    mkdirSync(machine(''));
    expect((await local('apply', '--yes')).stdout).toContain('Applied: 2 created.');
    expect(written('app.bin')?.equals(first)).toBe(true);
    expect((await local('apply', '--yes')).stdout).toContain('2 unchanged');
    writeFileSync(site('files/app.bin'), second);
    writeFileSync(site('files/hosts.liquid'), '{{ inputs.hosts | join: "," }}');
    expect((await local('apply', '--yes')).stdout).toContain('2 updated');
    expect([written('app.bin')?.equals(second), written('hosts')?.toString()]).toEqual([true, 'a,b']);
  });
});
