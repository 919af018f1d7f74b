/** Programs that run as another user: how the agent finds the user, switches to it, and starts a program as it. */
import { execFileSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { basename } from 'node:path';
import { findUser, type LoginUser } from '../terminal/login.js';
import { environmentOf, findProgram } from './launch.js';
import type { NotStarted } from './run-command.js';

/** A user, and the program and arguments that switch to it with all its groups and run the arguments after them. */
export interface OtherUser extends LoginUser {
  readonly become: readonly string[];
}

/** Returns the user of a command; null for the agent's own. Returns why no program can be started as it. */
export function otherUser(wanted: string | undefined): OtherUser | null | NotStarted {
  if (wanted === undefined) return null;
  const user = lookUp(wanted);
  if (user === null) return { ...NOT_STARTED, missing: true, code: 'unknown_owner', message: unknownUser(wanted) };
  const own = process.geteuid?.();
  if (user.uid === own) return null;
  if (own !== 0) return { ...NOT_STARTED, code: 'permission_denied', message: notAllowed(user.name) };
  const become = becomeUser(user);
  if (become !== null) return { ...user, become };
  const message = `no program of this machine can start another one as ${user.name}; install setpriv (util-linux)`;
  return { ...NOT_STARTED, code: 'command_missing', message };
}

const NOT_STARTED = { how: 'not-started', missing: false } as const;

const unknownUser = (name: string): string => `there is no user ${JSON.stringify(name)} on this machine`;

const notAllowed = (name: string): string =>
  `this agent does not run as root, so it cannot run programs as ${name}; run the agent as root`;

/** Looks a name or number up in the file of the machine, then in its directory services. */
function lookUp(wanted: string): LoginUser | null {
  const key = /^\d+$/.test(wanted) ? Number(wanted) : wanted;
  const local = findUser(passwd(), key);
  if (local !== null) return local;
  try {
    const options = { env: environmentOf({}), encoding: 'utf8', timeout: 5_000, stdio: 'pipe' } as const;
    return findUser(execFileSync('getent', ['passwd', '--', wanted], options), key);
  } catch {
    // Unknown user, or no `getent`.
    return null;
  }
}

function passwd(): string {
  try {
    return readFileSync('/etc/passwd', 'utf8');
  } catch {
    return '';
  }
}

/** Returns the program and arguments that switch to a user; null where no program of the machine can. */
export function becomeUser({ name, uid, gid }: Pick<LoginUser, 'name' | 'uid' | 'gid'>): readonly string[] | null {
  const env = environmentOf({});
  const setpriv = findProgram('setpriv', env);
  // The `setpriv` of BusyBox cannot switch users.
  if (typeof setpriv === 'string' && basename(realpathSync(setpriv)) === 'setpriv') {
    return [setpriv, `--reuid=${uid}`, `--regid=${gid}`, '--init-groups', '--inh-caps=-all', '--'];
  }
  const runuser = findProgram('runuser', env);
  return typeof runuser === 'string' ? [runuser, '-u', name, '--'] : null;
}

/** Enters the directory and takes the variables as the user, so that no program of root reads what the user chose. */
const ENTER = 'cd -- "$1" || exit 126; . "$2" || exit 126; shift 2; exec "$@"';

/** Returns the arguments that run a program as the user. @param variables path of a file that `variablesFile` made */
export const argumentsAs = (
  { become }: OtherUser,
  { directory, variables }: { readonly directory: string; readonly variables: string },
  argv: readonly string[],
): readonly string[] => [...become, '/bin/sh', '-c', ENTER, 'sh', directory, variables, ...argv];

/** Returns the text of a file that sets variables in a shell. */
export const variablesFile = (env: Readonly<Record<string, string>>): string =>
  Object.entries(env)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'\n`)
    .join('');
