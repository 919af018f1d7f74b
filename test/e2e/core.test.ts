/** The built command without the compiled code of its core, or with one that is not of this Node. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const BUILT = fileURLToPath(new URL('../../dist/orch', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'orch-core-'));
const compiled = join(directory, readdirSync(BUILT).find((name) => /^core-.*\.v8$/.test(name)) ?? 'missing');

beforeAll(() => cpSync(BUILT, directory, { recursive: true }));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Prints whether V8 refused the compiled code. */
const REFUSED = `process.stdout.write(String(require(${JSON.stringify(join(directory, 'core.js'))}).script.cachedDataRejected))`;

function run(...args: readonly string[]): { readonly status: number | null; readonly stdout: string } {
  const { status, stdout } = spawnSync(process.execPath, [...args], { encoding: 'utf8', env: { HOME: directory } });
  return { status, stdout };
}

const help = () => run(join(directory, 'orch.js'), 'agents', '--help');
const expected = spawnSync(process.execPath, [join(BUILT, 'orch.js'), 'agents', '--help'], { encoding: 'utf8' }).stdout;

describe('the core of the bundle', () => {
  it('is taken as it was compiled when the bundle was made', () => {
    expect(run('-e', REFUSED).stdout).toBe('false');
    expect(help()).toEqual({ status: 0, stdout: expected });
    expect(expected).toContain('orch agents list');
  });

  it('names no directory of the machine that it was made on', () => {
    expect(readFileSync(compiled).includes(Buffer.from(BUILT))).toBe(false);
  });

  it('is compiled anew when that is of another version of Node, or another kind of machine', () => {
    const otherwise = 'Object.defineProperty(process, NAME, { value: "other" }); require(FILE); ';
    for (const name of ['version', 'platform', 'arch']) {
      const told = otherwise
        .replace('NAME', JSON.stringify(name))
        .replace('FILE', JSON.stringify(join(directory, 'core.js')));
      expect(run('-e', told + REFUSED).stdout).toBe('undefined');
    }
  });

  it('is compiled anew when that is of another V8', () => {
    const bytes = readFileSync(compiled);
    // The version is the second word of the head.
    bytes.writeUInt32LE((bytes.readUInt32LE(4) ^ 0xffff) >>> 0, 4);
    writeFileSync(compiled, bytes);
    expect(run('-e', REFUSED).stdout).toBe('true');
    expect(help()).toEqual({ status: 0, stdout: expected });
  });

  it('is compiled anew when that is cut off', () => {
    writeFileSync(compiled, readFileSync(compiled).subarray(0, 1_000));
    expect(run('-e', REFUSED).stdout).toBe('true');
    expect(help()).toEqual({ status: 0, stdout: expected });
  });

  it('is compiled anew when there is none', () => {
    rmSync(compiled);
    expect(help()).toEqual({ status: 0, stdout: expected });
  });
});
