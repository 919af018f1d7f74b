/** What it takes to start a program: where it is, its environment, and what stands before it. */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { Command, CommandEnd } from '../../resources/command.js';

export type Environment = Readonly<Record<string, string>> & { readonly PATH: string };

/** The search path of the system, whatever that of the agent is. */
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Nothing of the agent's own environment, which may hold what programs are not to know. */
export function environmentOf({ env }: Pick<Command, 'env'>): Environment {
  return { PATH, LANG: 'C.UTF-8', ...user(), ...env };
}

function user(): Readonly<Record<string, string>> {
  try {
    const { homedir, username } = userInfo();
    return { HOME: homedir, USER: username, LOGNAME: username };
  } catch {
    // A user without an entry in the system's list.
    return { HOME: '/' };
  }
}

type NotStarted = Extract<CommandEnd, { how: 'not-started' }>;

/** The file of a program, or why it cannot be started. */
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

/** The agent makes files for itself alone; the usual umask is for programs. */
const WITH_USUAL_UMASK = ['/bin/sh', '-c', 'umask 022; exec "$@"', 'sh'] as const;

/** A scope of its own, which the end of the agent's unit does not take along. */
const IN_SCOPE = ['--scope', '--quiet', '--collect', '--'] as const;

/** The arguments to start a program with; the process becomes the program, so that its id and its end are the program's. */
export function launchArguments(
  program: string,
  args: readonly string[],
  { outlives, env }: { readonly outlives: boolean; readonly env: Environment },
): readonly [string, ...string[]] {
  const systemdRun = outlives && isUnderSystemd() ? findProgram('systemd-run', env) : null;
  const scope = typeof systemdRun === 'string' ? [systemdRun, ...IN_SCOPE] : [];
  return [...WITH_USUAL_UMASK, ...scope, program, ...args];
}

const isUnderSystemd = (): boolean => process.geteuid?.() === 0 && existsSync('/run/systemd/system');
