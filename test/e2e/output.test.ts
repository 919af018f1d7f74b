/** Where an answer goes that cannot be written: a full disk, and a reader that has left. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { ORCH, Sandbox } from '../support/orch.js';

const sandbox = new Sandbox();
afterAll(() => sandbox.dispose());

const shell = (command: string) =>
  spawnSync('bash', ['-c', command], { encoding: 'utf8', env: sandbox.env, cwd: sandbox.root });
const orch = (words: string) => `"${process.execPath}" "${ORCH}" ${words}`;

describe.skipIf(!existsSync('/dev/full'))('an answer that does not fit on the disk (needs /dev/full)', () => {
  it.each(['--version', '--version -v', '--help', 'completion bash', 'help exit-codes'])('orch %s says so', (words) => {
    const { status, stderr } = shell(`${orch(words)} > /dev/full`);
    expect(stderr).toMatch(/the answer could not be written: ENOSPC/);
    expect(stderr).not.toMatch(/node:/);
    expect(status).toBe(1);
  });
});

describe('an answer without a reader', () => {
  it.each(['--version', '--help', 'completion bash'])('orch %s ends without a word', (words) => {
    const { stdout, stderr } = shell(`{ sleep 0.2; ${orch(words)}; echo "status $?" >&2; } | true`);
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: 'status 0\n' });
  });
});
