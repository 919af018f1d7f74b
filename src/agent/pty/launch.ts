/** Command lines that start the program of a session and let it inherit only standard input, output and errors. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

export interface Launch {
  /** Path of the program. */
  readonly file: string;
  /** Name that the program sees as its own; that of a login shell starts with `-`. */
  readonly argv0: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Additional variables as `NAME=value`, set after the switch of user, so that no code of the agent's user sees them. */
  readonly variables: readonly string[];
  /** Working directory; `/` when the user cannot enter it. */
  readonly directory: string;
  /** User of the program; null for the agent's own. */
  readonly user: LaunchUser | null;
}

export interface LaunchUser {
  readonly uid: number;
  readonly gid: number;
  /** Program and arguments that switch to the user with all groups and run the arguments after them. */
  readonly become: readonly string[];
}

/** Closes inherited descriptors. Every later process inherits PTY masters, and could read and type in those terminals. */
const CLOSE_INHERITED = `for fd in /proc/$$/fd/*; do fd=\${fd##*/}; [ "$fd" -gt 2 ] 2>/dev/null && eval "exec $fd>&-"; done`;

const ENTER =
  'cd -- "$1" 2>/dev/null || cd /; unset OLDPWD; shift; umask 022; ' +
  'while [ "$1" != -- ]; do export "$1"; shift; done 2>/dev/null; shift';

const BASHES = ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash'];

const findBash = (): string | undefined => BASHES.find((path) => existsSync(path));

/** Returns false on a machine whose shells cannot close descriptors of two digits, where programs would inherit foreign ones. */
export const canLaunch = (): boolean =>
  findBash() !== undefined || spawnSync('/bin/sh', ['-c', 'exec 99>&-'], { env: {}, stdio: 'ignore' }).status === 0;

/** Returns program and arguments. The process becomes the program, so that its ID and its exit are the program's. */
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
  // Closes descriptors before the switch, because other processes of the user could take them.
  const enter = [...shell, `${ENTER}; ${become}`, ...target];
  return [...shell, `${CLOSE_INHERITED}; exec "$@"`, 'orch', ...user.become, ...enter];
}

/** Without bash a program keeps its name, so a login shell gets an option instead. */
function withPlainShell({ argv0, directory, variables, file, args, user }: Launch): readonly [string, ...string[]] {
  const shell = ['/bin/sh', '-c'] as const;
  const login = argv0.startsWith('-') ? ['-l'] : [];
  const enter = [...shell, `${ENTER}; exec "$@"`, 'orch', directory, ...variables, '--', file, ...login, ...args];
  return [...shell, `${CLOSE_INHERITED}; exec "$@"`, 'orch', ...(user?.become ?? []), ...enter];
}
