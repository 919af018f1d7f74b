import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { expandHome, profilesPath, stateDirectory } from '../../src/client/operator-files.js';
import { standardDataDir } from '../../src/settings/load-serve.js';
import { temporaryDirectory } from '../support/client.js';
import { ORCH } from '../support/orch.js';

const { homedir } = userInfo();

describe('a home that is none', () => {
  it.each([
    { HOME: '' },
    { HOME: '.' },
    { HOME: 'home/ada' },
    {},
    { HOME: '', XDG_CONFIG_HOME: 'config', XDG_STATE_HOME: './state' },
  ])('gives way to that of the user database: %j', (env) => {
    expect(profilesPath(env)).toBe(join(homedir, '.config/orch/config.yaml'));
    expect(stateDirectory(env)).toBe(join(homedir, '.local/state/orch'));
    expect(standardDataDir(env, false)).toBe(join(homedir, '.local/state/orch/serve'));
    expect(expandHome(env, '~/key')).toBe(join(homedir, 'key'));
  });

  it('lets no command read or write in the current directory', () => {
    const cwd = temporaryDirectory();
    const { XDG_CONFIG_HOME: _, XDG_STATE_HOME: __, ...env } = process.env;
    const { status, stdout } = spawnSync(process.execPath, [ORCH, 'config', '-o', 'json'], {
      env: { ...env, HOME: '' },
      cwd,
      encoding: 'utf8',
    });
    expect(status).toBe(0);
    expect(stdout).toContain(join(homedir, '.config/orch'));
    expect(readdirSync(cwd)).toEqual([]);
  });

  it('is not taken for an absolute one', () => {
    const env = { HOME: '/srv/ada', XDG_STATE_HOME: '/srv/state' };
    expect(profilesPath(env)).toBe('/srv/ada/.config/orch/config.yaml');
    expect(standardDataDir(env, false)).toBe('/srv/state/orch/serve');
  });
});
