/** The operator's files: their places by the XDG rules, and private writes (mode 0600 in a directory of mode 0700). */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { replaceFile } from '../disk/durable.js';
import { accountHome } from '../identity/account-home.js';
import { asOwnerOf } from '../identity/as-owner.js';
import { Fault } from '../kernel/fault.js';
import { homeDirectory, xdgDirectory } from '../kernel/home-directory.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns `~/.config/orch`, the directory of the profiles and the operator's key. */
export const configDirectory = (env: Environment): string => below(env, 'XDG_CONFIG_HOME');

/** Returns `~/.local/state/orch`, the directory of session tokens. */
export const stateDirectory = (env: Environment): string => below(env, 'XDG_STATE_HOME');

export const profilesPath = (env: Environment): string => join(configDirectory(env), 'config.yaml');

export const standardKeyPath = (env: Environment): string => join(configDirectory(env), 'operator.key');

/** Expands `~/` in a path from a configuration file. */
export const expandHome = (env: Environment, path: string): string =>
  path === '~' || path.startsWith('~/') ? join(homeDirectory(env, accountHome), path.slice(1)) : path;

const below = (env: Environment, variable: 'XDG_CONFIG_HOME' | 'XDG_STATE_HOME'): string =>
  join(xdgDirectory(env, variable, accountHome), 'orch');

/** Returns a variable that is true or false; undefined if it is unset or empty. Throws `usage` for any other value. */
export function booleanVariable(env: Environment, variable: string): boolean | undefined {
  const given = env[variable];
  if (!given) return undefined;
  if (/^(1|true|yes)$/i.test(given)) return true;
  if (/^(0|false|no)$/i.test(given)) return false;
  throw new Fault('usage', `${variable} is ${JSON.stringify(given)}, which is neither true nor false`);
}

/** Returns whether session tokens and profiles may be written: not with `ORCH_NO_STATE=1`. */
export const keepsState = (env: Environment): boolean => booleanVariable(env, 'ORCH_NO_STATE') !== true;

/** Throws `usage` where `ORCH_NO_STATE` forbids to write profiles. */
export function requireState(env: Environment): void {
  if (keepsState(env)) return;
  throw new Fault('usage', 'ORCH_NO_STATE is set, so profiles are not written', {
    hint: 'unset it, or give the connection with flags and variables: orch help environment',
  });
}

/** Replaces a file atomically. With sudo the file and its directories become those of the home's owner. Throws the system's error. */
export function writeOwnFile(path: string, content: string): void {
  asOwnerOf(path, () => {
    makeOwnDirectory(dirname(path));
    // Several commands may write at a time.
    replaceFile(path, content, { temporary: `${path}.${randomBytes(6).toString('hex')}.new` });
  });
}

/**
 * Creates a directory and its parents without access for others. An existing directory keeps its mode. With sudo they
 * become those of the owner of the nearest existing parent.
 */
export function makeOwnDirectory(path: string): void {
  asOwnerOf(path, () => {
    const made = mkdirSync(path, { recursive: true, mode: 0o700 });
    // An unusual umask removes even the owner's rights.
    if (made !== undefined) chmodSync(path, 0o700);
  });
}
