/** Chooses which variables of an operator's environment a program gets, as the AcceptEnv of an SSH server does. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { LOGIN_PATH } from './login-environment.js';

/** These decide which code runs, or belong to the login: no setting and no client reaches them. */
const NEVER =
  /^(?:LD_|DYLD_|ORCH_|BASH_|GCONV_|GLIBC_|MALLOC_|PERL|PYTHON|RUBY|NODE_)|^(?:PATH|HOME|USER|LOGNAME|SHELL|SHELLOPTS|BASHOPTS|IFS|ENV|PS4|CDPATH|PROMPT_COMMAND|TERM|TERMINFO|TERMINFO_DIRS|TERMCAP|LOCPATH|NLSPATH|HOSTALIASES|RESOLV_HOST_CONF|TMPDIR)$/;
const LOCALE = /^(?:LANG|LC_.+)$/;
const LIST_WITHIN = 2_000;

/** Returns the locales of the machine as `normalLocale` writes them; null where it cannot be asked. */
export type ListLocales = () => Promise<ReadonlySet<string> | null>;

/**
 * Returns the entries (`NAME=value`) whose names the machine accepts. A locale that it does not have is left out: programs would
 * complain, and forget its own.
 * @param accepted names, or their beginnings with a `*` behind
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

/** The value names a file to the C library, so it must not be a path. */
function isUsable(value: string, locales: ReadonlySet<string> | null): boolean {
  if (!/^[A-Za-z0-9_.@-]{1,64}$/.test(value) || value.startsWith('.')) return false;
  return locales === null || locales.has(normalLocale(value));
}

/** `de_DE.UTF-8` and `de_DE.utf8` are one. */
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
