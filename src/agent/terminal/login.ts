/** The login of a session's program: its user, shell, environment and accepted variables. */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { promisify } from 'node:util';

export interface LoginUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** Login shell; empty for the default shell. */
  readonly shell: string;
}

/** Finds an entry by name or user ID in lines of `passwd(5)`. Returns null without one. */
export function findUser(text: string, wanted: string | number): LoginUser | null {
  for (const line of text.split('\n')) {
    const [name = '', , uid = '', gid = '', , home = '', shell = ''] = line.split(':');
    if (!/^\d+$/.test(uid) || !/^\d+$/.test(gid)) continue;
    const user = { name, uid: Number(uid), gid: Number(gid), home: home || '/', shell: shell.trim() };
    if (user.name === wanted || user.uid === wanted) return user;
  }
  return null;
}

const run = promisify(execFile);

/** Looks up a user of the machine. Returns null for an unknown user. */
export async function readUser(wanted: string | number): Promise<LoginUser | null> {
  const local = findUser(textOf('/etc/passwd'), wanted);
  if (local !== null) return local;
  try {
    const env = { PATH: '/usr/bin:/bin' };
    const { stdout } = await run('getent', ['passwd', '--', String(wanted)], { env, timeout: 5_000 });
    return findUser(stdout, wanted);
  } catch {
    // Unknown user, or no `getent`.
    return null;
  }
}

export interface LoginEnvironmentOptions {
  readonly user: LoginUser;
  readonly shell: string;
  /** Operator who opened the session. */
  readonly operator: string;
  readonly sessionId: string;
  /** TERM; null for a command without a terminal. */
  readonly term: string | null;
}

/** Search path of the system, independent of the agent's. */
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

/** Returns the TERM of the client if this machine knows it, else a common one. */
export function knownTerm(term: string, directories: readonly string[] = TERMINFO): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9+._-]{0,63}$/.test(term)) return STANDARD_TERM;
  // Some systems name the directory by the code of the letter.
  const folders = [term.charAt(0), term.charCodeAt(0).toString(16)];
  const isKnown = directories.some((directory) =>
    folders.some((folder) => existsSync(`${directory}/${folder}/${term}`)),
  );
  return isKnown ? term : STANDARD_TERM;
}

/** Returns the language that the machine sets for all logins; null without one. */
export function machineLanguage(files: readonly string[] = ['/etc/default/locale', '/etc/locale.conf']): string | null {
  for (const file of files) {
    const found = /^[ \t]*(?:export[ \t]+)?LANG=["']?([A-Za-z0-9_.@-]+)["']?\s*$/m.exec(textOf(file));
    if (found?.[1] !== undefined) return found[1];
  }
  return null;
}

/** Variables that decide which code runs or belong to the login. No setting and no client can set them. */
const NEVER =
  /^(?:LD_|DYLD_|ORCH_|BASH_|GCONV_|GLIBC_|MALLOC_|PERL|PYTHON|RUBY|NODE_)|^(?:PATH|HOME|USER|LOGNAME|SHELL|SHELLOPTS|BASHOPTS|IFS|ENV|PS4|CDPATH|PROMPT_COMMAND|TERM|TERMINFO|TERMINFO_DIRS|TERMCAP|LOCPATH|NLSPATH|HOSTALIASES|RESOLV_HOST_CONF|TMPDIR)$/;
const LOCALE = /^(?:LANG|LC_.+)$/;
const LIST_WITHIN = 2_000;

/** Returns the locales of the machine as `normalLocale` writes them; null where it cannot be asked. */
export type ListLocales = () => Promise<ReadonlySet<string> | null>;

/**
 * Returns the entries (`NAME=value`) whose names the machine accepts. Drops unknown locales, because programs would complain and
 * ignore the machine's own.
 * @param accepted names, or prefixes followed by `*`
 */
export async function acceptedEnvironment(
  sent: readonly string[],
  accepted: readonly string[],
  listLocales: ListLocales = machineLocales,
): Promise<readonly string[]> {
  const taken = sent.filter((entry) => isAccepted(nameIn(entry), accepted));
  if (!taken.some(isLocale)) return taken;
  const locales = await listLocales();
  return taken.filter((entry) => !isLocale(entry) || isUsable(valueIn(entry), locales));
}

const nameIn = (entry: string): string => entry.slice(0, entry.indexOf('='));
const valueIn = (entry: string): string => entry.slice(entry.indexOf('=') + 1);
const isLocale = (entry: string): boolean => LOCALE.test(nameIn(entry));

function isAccepted(name: string, accepted: readonly string[]): boolean {
  if (NEVER.test(name)) return false;
  return accepted.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one));
}

/** Reports whether a locale is usable. The C library treats the value as a file name, so it must not be a path. */
function isUsable(value: string, locales: ReadonlySet<string> | null): boolean {
  if (!/^[A-Za-z0-9_.@-]{1,64}$/.test(value) || value.startsWith('.')) return false;
  return locales === null || locales.has(normalLocale(value));
}

/** Normalises a locale: `de_DE.UTF-8` and `de_DE.utf8` are equal. */
export const normalLocale = (name: string): string =>
  name.replace(/\.[^@]*/, (codeset) => `.${codeset.toLowerCase().replace(/[^a-z0-9]/g, '')}`);

async function machineLocales(): Promise<ReadonlySet<string> | null> {
  try {
    const options = { env: { PATH: LOGIN_PATH }, timeout: LIST_WITHIN, maxBuffer: 1024 * 1024 };
    const { stdout } = await promisify(execFile)('locale', ['-a'], options);
    return new Set(stdout.split('\n').map(normalLocale));
  } catch {
    return null;
  }
}

/** Parses `/etc/shells`. Ignores comments and relative paths. */
export const parseShells = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line.startsWith('/'));

/** Returns the allowed shells; without the file, those that every system has (`getusershell(3)`). */
export function readShells(path = '/etc/shells'): readonly string[] {
  try {
    return parseShells(readFileSync(path, 'utf8'));
  } catch {
    return ['/bin/sh', '/bin/csh'];
  }
}

/** Reports whether the path is an executable file. */
export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Returns the text of a file; empty when it cannot be read. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
