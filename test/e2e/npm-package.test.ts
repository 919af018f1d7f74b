/** The package for npm: its files, its locked libraries, and an installation that compiles none of them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const out = mkdtempSync(join(tmpdir(), 'orch-npm-'));
const unpacked = join(out, 'package');
const file = join(out, 'orch-0.1.0.tgz');

type Lock = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
const packagesOf = (path: string): Lock => readJson(path).packages;

beforeAll(() => {
  execFileSync(process.execPath, [join(root, 'scripts/package.mjs'), 'npm', '--out', out], { stdio: 'pipe' });
  execFileSync('tar', ['-xzf', file, '-C', out]);
});

afterAll(() => rmSync(out, { recursive: true, force: true }));

describe('the package for npm', () => {
  it('has the bundle without source maps, documents, and nothing else', () => {
    const files = readdirSync(unpacked, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(unpacked.length + 1));
    const known =
      /^(dist\/orch\/[\w.-]+\.(js|txt|json)|(docs|examples)\/[\w./-]+|package\.json|npm-shrinkwrap\.json|README\.md|LICENSE|CHANGELOG\.md)$/;
    expect(files.filter((path) => !known.test(path))).toEqual([]);
    expect(files).toContain('dist/orch/orch.js');
    expect(files).toContain('npm-shrinkwrap.json');
    expect(readFileSync(join(out, 'SHA256SUMS'), 'utf8')).toMatch(/^[0-9a-f]{64} {2}orch-0\.1\.0\.tgz\n$/);
  });

  it('runs no script when it is installed', () => {
    const manifest = readJson(join(unpacked, 'package.json'));
    expect(Object.keys(manifest)).not.toEqual(expect.arrayContaining(['scripts']));
    expect(Object.keys(manifest)).not.toEqual(expect.arrayContaining(['devDependencies']));
    expect(manifest.engines).toEqual(readJson(join(root, 'package.json')).engines);
  });

  it('locks the libraries outside of the bundle to the versions and hashes of the source, and names no registry', () => {
    const { '': own, ...locked } = packagesOf(join(unpacked, 'npm-shrinkwrap.json'));
    const { '': _, ...source } = packagesOf(join(root, 'package-lock.json'));
    const { dependencies, optionalDependencies } = readJson(join(unpacked, 'package.json'));
    expect([own?.dependencies, own?.optionalDependencies]).toEqual([dependencies, optionalDependencies]);
    expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(['kysely', 'pino']));
    expect(Object.values(dependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(String(version)))).toEqual([]);
    expect(Object.keys(locked)).toContain('node_modules/node-pty');
    expect(Object.keys(locked)).not.toContain('node_modules/typescript');
    for (const [path, { version, integrity, resolved, dev }] of Object.entries(locked)) {
      expect({ path, version, integrity }).toEqual({
        path,
        version: source[path]?.version,
        integrity: source[path]?.integrity,
      });
      expect([resolved, dev]).toEqual([undefined, undefined]);
    }
  });

  it('installs exactly these, and works when the native ones are not compiled', () => {
    const prefix = join(out, 'prefix');
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
    const install = ['install', '--global', '--prefix', prefix, '--ignore-scripts', '--no-audit', '--no-fund', file];
    execFileSync('npm', install, { env, stdio: 'pipe' });
    const installed = join(prefix, 'lib/node_modules/orch');
    const locked = packagesOf(join(unpacked, 'npm-shrinkwrap.json'));
    const names = readdirSync(join(installed, 'node_modules')).flatMap((name) => {
      if (name.startsWith('.')) return [];
      if (!name.startsWith('@')) return [name];
      return readdirSync(join(installed, 'node_modules', name)).map((inner) => `${name}/${inner}`);
    });
    expect(names).toContain('pino');
    expect(names).toContain('node-pty');
    for (const name of names) {
      const { version } = readJson(join(installed, 'node_modules', name, 'package.json'));
      expect({ name, version }).toEqual({ name, version: locked[`node_modules/${name}`]?.version });
    }
    const orch = (...args: readonly string[]) =>
      spawnSync(join(prefix, 'bin/orch'), args, { encoding: 'utf8', env: { ...env, HOME: out, NO_COLOR: '1' } });
    expect(orch('--version')).toMatchObject({ status: 0, stdout: 'orch 0.1.0\n' });
    expect(orch('module', 'validate', join(installed, 'examples/hello.orch.yaml'))).toMatchObject({ status: 0 });
  });
});
