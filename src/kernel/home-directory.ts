/** The user's own directories. An empty or relative HOME is no home: files would land wherever the program is started. */

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns true for a path of Unix or Windows that does not depend on the current directory. */
const isAbsolute = (path: string | undefined): path is string => /^(?:\/|[A-Za-z]:[\\/])/.test(path ?? '');

/**
 * Returns HOME if it is an absolute path, otherwise the home directory of the user database.
 * @param ofUser looks up the user database
 */
export const homeDirectory = (env: Environment, ofUser: () => string): string =>
  isAbsolute(env.HOME) ? env.HOME : ofUser();

/** Returns the directory in an XDG variable, which the XDG rules ignore if it is relative; otherwise one below the home. */
export const xdgDirectory = (
  env: Environment,
  variable: 'XDG_CONFIG_HOME' | 'XDG_STATE_HOME',
  ofUser: () => string,
): string => {
  const given = env[variable];
  const below = variable === 'XDG_CONFIG_HOME' ? '.config' : '.local/state';
  return isAbsolute(given) ? given : `${homeDirectory(env, ofUser)}/${below}`;
};
