/** Shells to type into: ours, and those beside it. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { LOGIN_PATH } from '../../../src/agent/terminal/login.js';
import { OURS } from '../row.js';
import type { Fleet } from './fleet.js';
import type { Sshd } from './sshd.js';
import { Typist } from './typist.js';

export const BARE = 'bare';
export const SSH = 'ssh';
export const JUMP = 'ssh -J';
/** The same three programs without anything that ours do besides forwarding: what Node makes possible. */
export const LIMIT = 'bare ws';

const LIMIT_PROGRAM = fileURLToPath(new URL('../bench/limits/bare-terminal.mjs', import.meta.url));

export interface Target {
  readonly name: string;
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

export function targetsOf(fleet: Fleet, sshd: Sshd | null): readonly Target[] {
  const { env } = fleet;
  const ours: Target = { name: OURS, command: fleet.orch('term', fleet.name, '--escape-char', 'none'), env };
  const { shell, ...login } = localLogin();
  const bare: Target = { name: BARE, command: [shell, '-l'], env: login.env };
  const limit: Target = { name: LIMIT, command: [process.execPath, LIMIT_PROGRAM], env };
  if (sshd === null) return [ours, bare, limit];
  return [ours, bare, limit, { name: SSH, command: sshd.direct, env }, { name: JUMP, command: sshd.jump, env }];
}

/** A shell at its prompt. */
export async function open({ command, env }: Target, pace?: number): Promise<Typist> {
  const typist = new Typist(command, pace === undefined ? { env } : { env, pace });
  await typist.prompt();
  return typist;
}

/** Runs a line that reports its end; the report cannot be its own echo. */
export async function enter(typist: Typist, line: string): Promise<void> {
  typist.forget();
  typist.type(`${line}; printf 'all-%s' done\r`);
  await typist.shows(/all-done/);
  typist.forget();
}

/** The shell of this user, with their own home as a login gives it: what it reads there at its start, the remote ones read too. */
function localLogin(): { readonly shell: string; readonly env: NodeJS.ProcessEnv } {
  const entry = spawnSync('sh', ['-c', 'getent passwd "$(id -u)"']).stdout.toString().trim().split(':');
  const [user = '', , , , , home = '/', shell = ''] = entry;
  const file = shell || '/bin/sh';
  return {
    shell: file,
    env: { HOME: home, USER: user, LOGNAME: user, SHELL: file, PATH: LOGIN_PATH, LANG: 'C.UTF-8' },
  };
}
