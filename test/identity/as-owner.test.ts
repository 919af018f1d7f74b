/** Writes of root in another user's directories, as with sudo that keeps the user's HOME. */
import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

import { temporaryDirectory } from '../support/database.js';
import { ORCH } from '../support/orch.js';

const NOBODY = 65_534;

/** Returns the owners of everything below a directory. */
const ownersBelow = (directory: string): readonly number[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((name) => statSync(join(directory, name)).uid);

describe.skipIf(process.geteuid?.() !== 0)('a command of root with the home directory of another user', () => {
  it('leaves no file that is not the user’s, and the user goes on', () => {
    const home = temporaryDirectory();
    mkdirSync(home, { recursive: true });
    chownSync(home, NOBODY, NOBODY);
    const env = { PATH: process.env.PATH, HOME: home };
    const orch = (as: 'root' | 'nobody', ...words: readonly string[]) => {
      const ids = as === 'nobody' ? { uid: NOBODY, gid: NOBODY } : {};
      return spawnSync(process.execPath, [ORCH, ...words], { env, encoding: 'utf8', cwd: '/', ...ids });
    };
    const profile = (name: string) => [
      'profile',
      'create',
      name,
      '--url',
      'https://127.0.0.1:1',
      '--tls-fingerprint',
      'ab'.repeat(32),
    ];
    expect(orch('root', ...profile('first'))).toMatchObject({ status: 0 });
    expect(orch('root', 'operator', 'init')).toMatchObject({ status: 0 });
    expect(new Set(ownersBelow(home))).toEqual(new Set([NOBODY]));
    expect(orch('nobody', ...profile('second'))).toMatchObject({ status: 0 });
    expect(orch('root', 'profile', 'use', 'first')).toMatchObject({ status: 0 });
    expect(orch('nobody', 'profile', 'list')).toMatchObject({ status: 0, stdout: expect.stringContaining('*  first') });
    // The key is read, and no orchestrator is there.
    expect(orch('nobody', 'operator', 'whoami')).toMatchObject({ status: 69 });
    const refused = orch('root', 'operator', 'whoami');
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('without sudo') });
    expect(refused.stderr).not.toContain('chown');
    expect(new Set(ownersBelow(home))).toEqual(new Set([NOBODY]));
  });
});
