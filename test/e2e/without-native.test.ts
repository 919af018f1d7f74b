/** An install without the native modules still is a working operator's command line. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const install = mkdtempSync(join(tmpdir(), 'orch-install-'));

const orch = (...args: readonly string[]) => {
  const env = { PATH: process.env.PATH, HOME: install, NO_COLOR: '1' };
  return spawnSync(process.execPath, [join(install, 'dist/orch/orch.js'), ...args], { encoding: 'utf8', env });
};

beforeAll(() => {
  cpSync(join(root, 'dist'), join(install, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(install, 'package.json'));
  mkdirSync(join(install, 'node_modules'));
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name.startsWith('better-sqlite3') || name.startsWith('.')) continue;
    symlinkSync(join(root, 'node_modules', name), join(install, 'node_modules', name));
  }
});

afterAll(() => rmSync(install, { recursive: true, force: true }));

describe('an install without native modules', () => {
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
    expect(stderr).toContain('apt-get install g++ make python3; Fedora: dnf install gcc-c++ make python3');
  });
});
