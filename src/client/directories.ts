/** Where the operator's files are, by the rules of XDG. */
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** `~/.config/orch`: profiles and the operator's key. */
export const configDirectory = (env: Environment): string => below(env, 'XDG_CONFIG_HOME', '.config');

/** `~/.local/state/orch`: session tokens. */
export const stateDirectory = (env: Environment): string => below(env, 'XDG_STATE_HOME', '.local', 'state');

export const profilesPath = (env: Environment): string => join(configDirectory(env), 'config.yaml');

export const standardKeyPath = (env: Environment): string => join(configDirectory(env), 'operator.key');

/** A path as people write it in a configuration file, with `~/` for their home. */
export const expandHome = (env: Environment, path: string): string =>
  path === '~' || path.startsWith('~/') ? join(homeOf(env), path.slice(1)) : path;

const homeOf = (env: Environment): string => env.HOME || homedir();

function below(env: Environment, variable: string, ...otherwise: readonly string[]): string {
  const given = env[variable];
  // The XDG rules say to ignore a relative path.
  const base = given && isAbsolute(given) ? given : join(homeOf(env), ...otherwise);
  return join(base, 'orch');
}
