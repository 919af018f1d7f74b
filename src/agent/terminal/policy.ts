/** Decides by the machine's own settings whether a session may open on it, and as which user and program. */
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { Fault } from '../../kernel/fault.js';
import { COMPILE_HINT } from '../../kernel/native-libraries.js';
import type { AgentSettings } from '../../settings/agent.js';
import type { OrchestratorMessageOf } from '../../wire/messages.js';
import { findProgram } from '../host/launch.js';
import { becomeUser } from '../host/other-user.js';
import { canLaunch, type Launch, type LaunchUser } from '../pty/launch.js';
import type { ProgramOrder } from './host-messages.js';
import {
  acceptedEnvironment,
  isProgram,
  LOGIN_PATH,
  type LoginUser,
  loginEnvironment,
  readShells,
  readUser,
} from './login.js';

export type TerminalSettings = Pick<AgentSettings, Extract<keyof AgentSettings, `remote_terminal.${string}`>>;

export interface PolicyOptions {
  readonly settings: TerminalSettings;
  /** Number of open shells, without the requested one. */
  readonly shells: number;
  readonly commands: number;
}

export interface Permission {
  readonly order: ProgramOrder;
  readonly user: string;
  /** Null for a command. */
  readonly shell: string | null;
}

type Request = OrchestratorMessageOf<'terminal_open'>;

interface Login {
  readonly user: LoginUser;
  /** Accepted variables of the operator. */
  readonly variables: readonly string[];
}

/** Maximum commands at the same time. */
const MOST_COMMANDS = 200;

/**
 * Decides about a request. Throws `terminal_disabled`, `terminal_unsupported`, `terminal_limit`, `shell_not_allowed`, `command_missing` or
 * `command_not_executable`.
 */
export async function permit(request: Request, { settings, shells, commands }: PolicyOptions): Promise<Permission> {
  requireEnabled(settings);
  requirePlatform(request.kind === 'shell' || request.tty === true);
  requireRoom(request.kind === 'shell' ? shells : commands, {
    most: request.kind === 'shell' ? settings['remote_terminal.max_sessions'] : MOST_COMMANDS,
    what: request.kind === 'shell' ? 'open shells' : 'running commands',
  });
  const [user, variables] = await Promise.all([
    userOf(settings),
    acceptedEnvironment(request.env ?? [], settings['remote_terminal.accept_env']),
  ]);
  const shell = user.shell || '/bin/sh';
  return request.kind === 'shell'
    ? shellPermission(request, { user, variables }, chooseShell(request.shell, shell, settings))
    : commandPermission(request, { user, variables }, shell);
}

function requireEnabled(settings: TerminalSettings): void {
  if (settings['remote_terminal.enabled']) return;
  throw new Fault('terminal_disabled', 'this agent allows no remote terminals', {
    hint: 'set remote_terminal.enabled: true in its configuration file',
  });
}

function requirePlatform(needsTerminal: boolean): void {
  if (process.platform !== 'linux') {
    throw unsupported(`there are no remote terminals on ${process.platform} yet`, 'only on Linux');
  }
  if (!canLaunch()) {
    throw unsupported('the shell of this machine cannot keep programs from inheriting descriptors', 'install bash');
  }
  if (!needsTerminal) return;
  try {
    createRequire(import.meta.url).resolve('node-pty/package.json');
  } catch (cause) {
    throw unsupported(
      'terminals need the package node-pty, and this machine lacks it (commands run without it)',
      COMPILE_HINT,
      cause,
    );
  }
}

function requireRoom(open: number, { most, what }: { readonly most: number; readonly what: string }): void {
  if (open < most) return;
  throw new Fault('terminal_limit', `this agent allows at most ${most} ${what} at a time`, {
    hint: 'close one of them: orch term list',
  });
}

async function userOf(settings: TerminalSettings): Promise<LoginUser> {
  const name = settings['remote_terminal.user'];
  const own = process.geteuid?.() ?? -1;
  const user = await readUser(name === '' ? own : name);
  const mend = 'change remote_terminal.user in the configuration file of the agent';
  if (user === null) {
    const who = name === '' ? `the agent's own user ${own} has no entry` : `there is no user ${JSON.stringify(name)}`;
    throw unsupported(`${who} on this machine`, mend);
  }
  if (user.uid !== own && own !== 0) {
    throw unsupported(`this agent does not run as root, so it cannot open terminals as ${user.name}`, mend);
  }
  return user;
}

function chooseShell(asked: string | null, login: string, settings: TerminalSettings): string {
  const standard = settings['remote_terminal.shell'] || login;
  if (asked !== null && asked !== standard && !settings['remote_terminal.allow_operator_shell_override']) {
    throw new Fault('shell_not_allowed', `this agent lets operators have no other shell than ${standard}`, {
      hint: 'set remote_terminal.allow_operator_shell_override: true in the configuration file of the agent',
    });
  }
  const shell = asked ?? standard;
  if (!readShells().includes(shell)) {
    throw new Fault('shell_not_allowed', `${JSON.stringify(shell)} is not one of the shells in /etc/shells`);
  }
  if (!isProgram(shell)) throw new Fault('shell_not_allowed', `there is no shell ${shell} on this machine`);
  return shell;
}

function shellPermission(
  { session_id, operator, term, cols, rows }: Request,
  { user, variables }: Login,
  shell: string,
): Permission {
  const launch: Launch = {
    file: shell,
    argv0: `-${basename(shell)}`,
    args: [],
    env: loginEnvironment({ user, shell, operator, sessionId: session_id, term }),
    variables,
    directory: user.home,
    user: switchTo(user),
  };
  return {
    order: { launch, size: { cols, rows }, stdin: true, timeoutSecs: null, wait: null },
    user: user.name,
    shell,
  };
}

function commandPermission(request: Request, { user, variables }: Login, shell: string): Permission {
  const { session_id, operator, command, stdin, timeout_secs, cols, rows } = request;
  const isOnTerminal = request.tty === true;
  const [name = '', ...args] = [...(command ?? []), ...(request.more_words ?? [])];
  const file = findProgram(name, { PATH: LOGIN_PATH });
  if (typeof file !== 'string') {
    if (file.missing) throw new Fault('command_missing', `this agent has no program ${JSON.stringify(name)}`);
    throw new Fault('command_not_executable', `the program cannot be executed: ${file.message}`);
  }
  if ([name, ...args].some((word) => word.includes('\0'))) {
    throw new Fault('command_not_executable', 'no argument of a command can hold a NUL character');
  }
  const launch: Launch = {
    file,
    argv0: name,
    args,
    env: loginEnvironment({ user, shell, operator, sessionId: session_id, term: isOnTerminal ? request.term : null }),
    variables,
    directory: user.home,
    user: switchTo(user),
  };
  const size = isOnTerminal ? { cols, rows } : null;
  return {
    order: { launch, size, stdin, timeoutSecs: timeout_secs, wait: request.wait ?? null },
    user: user.name,
    shell: null,
  };
}

/** Returns how to switch to a user; null for the agent's own. Throws `terminal_unsupported` without a program for it. */
function switchTo(user: LoginUser): LaunchUser | null {
  if (user.uid === process.geteuid?.()) return null;
  const become = becomeUser(user);
  if (become !== null) return { uid: user.uid, gid: user.gid, become };
  throw unsupported(`no program of this machine can start a shell as ${user.name}`, 'install setpriv (util-linux)');
}

/** Puts the remedy into the message, because operators only see the message of an agent's fault. */
const unsupported = (message: string, mend: string, cause?: unknown): Fault =>
  new Fault('terminal_unsupported', `${message}: ${mend}`, { cause });
