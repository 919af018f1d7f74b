/** How a program of a session is started: with nothing of the agent but standard input, output and errors. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

export interface Launch {
  /** Path of the program. */
  readonly file: string;
  /** What it sees as its own name; a login shell's begins with `-`. */
  readonly argv0: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** `NAME=value` beside those, set only once the process runs as its user: nothing that runs as the agent sees them. */
  readonly variables: readonly string[];
  /** Where it starts; `/` when its user cannot go there. */
  readonly directory: string;
  /** The user it runs as; null for the agent's own. */
  readonly user: LaunchUser | null;
}

export interface LaunchUser {
  readonly uid: number;
  readonly gid: number;
  /** Program and arguments that become that user, with all of its groups, and run what follows. */
  readonly become: readonly string[];
}

/** PTY masters are inherited by every process that is started after them: whoever has one reads and types in that terminal. */
const CLOSE_INHERITED = `for fd in /proc/$$/fd/*; do fd=\${fd##*/}; [ "$fd" -gt 2 ] 2>/dev/null && eval "exec $fd>&-"; done`;

const ENTER =
  'cd -- "$1" 2>/dev/null || cd /; unset OLDPWD; shift; umask 022; ' +
  'while [ "$1" != -- ]; do export "$1"; shift; done 2>/dev/null; shift';

const BASHES = ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash'];

const findBash = (): string | undefined => BASHES.find((path) => existsSync(path));

/** False on a machine whose shells cannot close descriptors of two digits: programs would inherit what is not theirs. */
export const canLaunch = (): boolean =>
  findBash() !== undefined || spawnSync('/bin/sh', ['-c', 'exec 99>&-'], { env: {}, stdio: 'ignore' }).status === 0;

/** Program and arguments; the process becomes the program, so that its id and its end are the program's. */
export function argumentsOf(launch: Launch): readonly [string, ...string[]] {
  const bash = findBash();
  return bash === undefined ? withPlainShell(launch) : withBash(bash, launch);
}

function withBash(
  bash: string,
  { argv0, directory, variables, file, args, user }: Launch,
): readonly [string, ...string[]] {
  const shell = [bash, '--norc', '--noprofile', '-c'] as const;
  const target = [argv0, directory, ...variables, '--', file, ...args];
  const become = 'exec -a "$0" "$@"';
  if (user === null) return [...shell, `${CLOSE_INHERITED}; ${ENTER}; ${become}`, ...target];
  // Closed before the change of the user, whose other processes could take the descriptors away.
  const enter = [...shell, `${ENTER}; ${become}`, ...target];
  return [...shell, `${CLOSE_INHERITED}; exec "$@"`, 'orch', ...user.become, ...enter];
}

/** Shells other than bash cannot give a program another name: a login shell is told so by its option. */
function withPlainShell({ argv0, directory, variables, file, args, user }: Launch): readonly [string, ...string[]] {
  const shell = ['/bin/sh', '-c'] as const;
  const login = argv0.startsWith('-') ? ['-l'] : [];
  const enter = [...shell, `${ENTER}; exec "$@"`, 'orch', directory, ...variables, '--', file, ...login, ...args];
  return [...shell, `${CLOSE_INHERITED}; exec "$@"`, 'orch', ...(user?.become ?? []), ...enter];
}
