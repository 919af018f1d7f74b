/** What a program of a session finds in its environment: that of a login, and nothing of the agent's. */
import { existsSync } from 'node:fs';
import type { LoginUser } from './login-user.js';
import { textOf } from './text-of.js';

export interface LoginEnvironmentOptions {
  readonly user: LoginUser;
  readonly shell: string;
  /** Who asked for it. */
  readonly operator: string;
  readonly sessionId: string;
  /** Null for a command, which has no terminal. */
  readonly term: string | null;
}

/** The search path of the system, whatever that of the agent is. */
export const LOGIN_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const TERMINFO = [
  '/etc/terminfo',
  '/lib/terminfo',
  '/usr/share/terminfo',
  '/usr/lib/terminfo',
  '/usr/local/share/terminfo',
];
const STANDARD_TERM = 'xterm-256color';

export function loginEnvironment(options: LoginEnvironmentOptions): Readonly<Record<string, string>> {
  const { user, shell, operator, sessionId, term } = options;
  return {
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    SHELL: shell,
    PATH: LOGIN_PATH,
    LANG: machineLanguage() ?? 'C.UTF-8',
    ...(term === null ? {} : { TERM: knownTerm(term) }),
    ORCH_OPERATOR: operator.replaceAll('\0', ''),
    ORCH_SESSION: sessionId,
  };
}

/** The client's kind of terminal when this machine knows it too. */
export function knownTerm(term: string, directories: readonly string[] = TERMINFO): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9+._-]{0,63}$/.test(term)) return STANDARD_TERM;
  // Some systems name the directory by the code of the letter.
  const folders = [term.charAt(0), term.charCodeAt(0).toString(16)];
  const isKnown = directories.some((directory) =>
    folders.some((folder) => existsSync(`${directory}/${folder}/${term}`)),
  );
  return isKnown ? term : STANDARD_TERM;
}

/** As the machine sets it for all logins; null when it does not. */
export function machineLanguage(files: readonly string[] = ['/etc/default/locale', '/etc/locale.conf']): string | null {
  for (const file of files) {
    const found = /^\s*(?:export\s+)?LANG=["']?([A-Za-z0-9_.@-]+)["']?\s*$/m.exec(textOf(file));
    if (found?.[1] !== undefined) return found[1];
  }
  return null;
}
