/** How programs are started on Linux and macOS: their environment, path and launch arguments. */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { Command, CommandEnd } from '../../resources/command.js';

export type Environment = Readonly<Record<string, string>> & { readonly PATH: string };

/** Search path of the system, independent of the agent's own. */
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Returns a clean environment without the agent's own variables, which may hold secrets. */
export function environmentOf({ env }: Pick<Command, 'env'>): Environment {
  return { PATH, LANG: 'C.UTF-8', ...ownUser(), ...env };
}

/** Returns a clean environment of a user. */
export const environmentOfUser = ({ name, home }: { readonly name: string; readonly home: string }): Environment => ({
  PATH,
  LANG: 'C.UTF-8',
  HOME: home,
  USER: name,
  LOGNAME: name,
});

function ownUser(): Readonly<Record<string, string>> {
  try {
    const { homedir, username } = userInfo();
    return { HOME: homedir, USER: username, LOGNAME: username };
  } catch {
    // The user has no entry in the system's accounts.
    return { HOME: '/' };
  }
}

type NotStarted = Extract<CommandEnd, { how: 'not-started' }>;

/** Returns why a program cannot be started in a directory; null when nothing is known against it. */
export function problemOfDirectory(directory: string): NotStarted | null {
  const there = (() => {
    try {
      return statSync(directory).isDirectory() ? 'directory' : 'other';
    } catch (error) {
      return systemCodeOf(error) === 'ENOENT' || systemCodeOf(error) === 'ENOTDIR' ? 'nothing' : 'unknown';
    }
  })();
  const what = `the working directory ${directory}`;
  if (there === 'nothing') {
    return { how: 'not-started', missing: true, code: 'parent_missing', message: `${what} does not exist` };
  }
  if (there !== 'other') return null;
  return { how: 'not-started', missing: false, code: 'wrong_type', message: `${what} is not a directory` };
}

/** Returns the path of a program, or why it cannot be started. */
export function findProgram(name: string, { PATH: path }: Environment): string | NotStarted {
  const places = name.includes('/') ? [name] : path.split(':').map((directory) => `${directory}/${name}`);
  let refusal: NotStarted = { how: 'not-started', missing: true, message: `there is no ${name}` };
  for (const place of places) {
    const problem = problemOf(place);
    if (problem === null) return place;
    if (systemCodeOf(problem) !== 'ENOENT' && systemCodeOf(problem) !== 'ENOTDIR') {
      refusal = { how: 'not-started', missing: false, message: messageOf(problem) };
    }
  }
  return refusal;
}

function problemOf(place: string): unknown {
  try {
    if (!statSync(place).isFile()) return new Error(`${place} is not a program`);
    accessSync(place, constants.X_OK);
    return null;
  } catch (error) {
    return error;
  }
}

/** The agent's own umask is closed; programs get the usual one. */
const WITH_USUAL_UMASK = ['/bin/sh', '-c', 'umask 022; exec "$@"', 'sh'] as const;

/** A systemd scope of its own, which survives the end of the agent's unit. */
const IN_SCOPE = ['--scope', '--quiet', '--collect', '--'] as const;

/** Returns the launch arguments. The started process becomes the program, so its ID and exit status are the program's. */
export function launchArguments(
  program: string,
  args: readonly string[],
  { outlives, env }: { readonly outlives: boolean; readonly env: Environment },
): readonly [string, ...string[]] {
  const systemdRun = outlives && isUnderSystemd() ? findProgram('systemd-run', env) : null;
  const scope = typeof systemdRun === 'string' ? [systemdRun, ...IN_SCOPE] : [];
  const [first = program, ...rest] = [...scope, program, ...args];
  // Without a shell, programs get the umask of the agent.
  const hasShell = typeof findProgram(WITH_USUAL_UMASK[0], env) === 'string';
  return hasShell ? [...WITH_USUAL_UMASK, first, ...rest] : [first, ...rest];
}

const isUnderSystemd = (): boolean => process.geteuid?.() === 0 && existsSync('/run/systemd/system');
