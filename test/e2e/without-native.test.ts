/** An install without the native libraries still is an operator's command line and an agent, and says how to get them. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import { ORCH, Sandbox, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const install = mkdtempSync(join(tmpdir(), 'orch-install-'));
const program = join(install, 'dist/orch/orch.js');
const pty = join(install, 'node_modules/node-pty');

const PACKAGES = 'Debian: apt-get install g++ make python3; Fedora: dnf install gcc-c++ make python3';
const COMMAND = 'npm install --global --allow-scripts=better-sqlite3,node-pty ./orch-0.1.0.tgz';

const orch = (...args: readonly string[]) => {
  // The machine may have a data directory at the default path.
  const noData = { ORCH_SERVE_DATA_DIR: join(install, 'no-data') };
  const env = { PATH: process.env.PATH, HOME: install, NO_COLOR: '1', ...noData };
  return spawnSync(process.execPath, [program, ...args], { encoding: 'utf8', env });
};

beforeAll(() => {
  cpSync(join(root, 'dist/orch'), join(install, 'dist/orch'), { recursive: true });
  cpSync(join(root, 'package.json'), join(install, 'package.json'));
  mkdirSync(join(install, 'node_modules'));
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name.startsWith('better-sqlite3') || name.startsWith('.') || name === 'node-pty') continue;
    symlinkSync(join(root, 'node_modules', name), join(install, 'node_modules', name));
  }
});

afterAll(() => rmSync(install, { recursive: true, force: true }));

describe('an install without native libraries', () => {
  it('makes a key, validates modules and looks for an orchestrator', () => {
    expect(orch('--version')).toMatchObject({ status: 0, stdout: 'orch 0.1.0\n' });
    expect(orch('operator', 'init')).toMatchObject({ status: 0 });
    expect(orch('module', 'validate', join(root, 'examples/hello.orch.yaml'))).toMatchObject({ status: 0 });
    expect(orch('status', '--url', 'https://127.0.0.1:1')).toMatchObject({ status: 69 });
  });

  it('says what orch serve lacks', () => {
    const { status, stderr } = orch('serve', '--data-dir', join(install, 'data'));
    expect(status).toBe(1);
    expect(stderr).toContain('better-sqlite3');
    expect(stderr).toContain(PACKAGES);
    expect(stderr).toContain(COMMAND);
  });
});

describe('an install for another Node', () => {
  it('says so', () => {
    const made = ['better-sqlite3', 'better-sqlite3-13'].map((name) => join(install, 'node_modules', name));
    for (const directory of made) {
      mkdirSync(directory);
      const message =
        "The module 'a.node'\nwas compiled against a different Node.js version using\nNODE_MODULE_VERSION 1.";
      writeFileSync(join(directory, 'index.js'), `throw new Error(${JSON.stringify(message)});\n`);
    }
    const { stderr } = orch('serve', '--data-dir', join(install, 'data'));
    for (const directory of made) rmSync(directory, { recursive: true });
    expect(stderr).toContain('cannot be loaded: it was compiled for another Node.js than this one\n');
    expect(stderr).toContain(COMMAND);
  });
});

describe('an agent without native libraries', () => {
  const sandbox = new Sandbox();
  const machine = new Sandbox(program);

  beforeAll(async () => {
    await sandbox.orch(['operator', 'init']);
    const { ready } = await sandbox.serve();
    await sandbox.orch([
      'profile',
      'create',
      'test',
      '--url',
      ready.api_url,
      '--tls-fingerprint',
      ready.tls_fingerprint,
    ]);
    await sandbox.orch(['profile', 'use', 'test']);
    writeFileSync(machine.path('agent.yaml'), 'remote_terminal: {enabled: true}\n', { mode: 0o600 });
    const options = ['--orchestrator-key', ready.public_key, '--data-dir', machine.path('agent')];
    machine.start(['agent', 'connect', ready.agent_address, ...options, '--config', machine.path('agent.yaml')]);
    const agents = () => sandbox.json<readonly Agent[]>(['agents', 'list']);
    await until(async () => (await agents()).length === 1, 'the agent waits for approval');
    await sandbox.orch(['agents', 'approve', (await agents())[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
    await until(async () => (await agents())[0]?.status === 'approved', 'the agent is approved');
  });

  afterAll(async () => {
    await machine.dispose();
    await sandbox.dispose();
  });

  /** Returns what `orch exec -t` shows the operator, without the breaks of lines. */
  const refusal = async () => {
    const terminal = new Pty([process.execPath, ORCH, 'exec', '-t', 'web-01', '--', 'true'], {
      env: sandbox.env,
      cwd: sandbox.root,
      cols: 1000,
    });
    onTestFinished(() => terminal.kill());
    expect(await terminal.ended()).toBe(255);
    return terminal.output;
  };

  it('applies and runs commands', async () => {
    writeFileSync(
      sandbox.path('site.orch.yaml'),
      `name: site\nsupports: [{platform: linux}]\nresources:\n  - resource: {file-unix: {path: ${machine.path('f')}, content: x}}\n`,
    );
    expect(await sandbox.orch(['apply', 'web-01', '-f', 'site.orch.yaml', '--yes'])).toMatchObject({ status: 0 });
    expect(existsSync(machine.path('f'))).toBe(true);
    expect(await sandbox.orch(['exec', 'web-01', '--', 'echo', 'hello'])).toMatchObject({ stdout: 'hello\n' });
  });

  it('says what terminals lack, where npm left node-pty out', async () => {
    const told = await refusal();
    expect(told).toContain('this machine lacks it');
    expect(told).toContain(PACKAGES);
    expect(told).toContain(COMMAND);
  });

  it('says what terminals lack, where npm has not compiled node-pty', async () => {
    cpSync(join(root, 'node_modules/node-pty'), pty, {
      recursive: true,
      filter: (path) => !path.includes(join('node-pty', 'build')),
    });
    const told = await refusal();
    expect(told).toContain('terminals need the package node-pty, and it does not load: ');
    expect(told).toContain(PACKAGES);
    expect(told).toContain(COMMAND);
  });

  it('notes that in orch doctor, as a problem only where an orchestrator is, with what compiles the module', () => {
    const note = orch('doctor');
    expect(note).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^note +store module +orch serve will not/m),
    });
    const data = join(install, 'data');
    mkdirSync(data, { recursive: true });
    const env = { PATH: '/nonexistent', HOME: install, NO_COLOR: '1', ORCH_SERVE_DATA_DIR: data };
    const { status, stdout } = spawnSync(process.execPath, [join(install, 'dist/orch/orch.js'), 'doctor'], {
      encoding: 'utf8',
      env,
    });
    expect(status).toBe(1);
    expect(stdout).toMatch(/^problem +store module +orch serve will not work: .*better-sqlite3/m);
    expect(stdout).toMatch(/sudo (apt install g\+\+ make python3|dnf install gcc-c\+\+ make python3)/);
  });
});
