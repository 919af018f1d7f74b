/** One profile as it stands in the file, and what may be wrong with it. */

export interface Profile {
  readonly url: string;
  /** SHA-256 of the SPKI of the server's certificate in hex. */
  readonly tls_fingerprint?: string;
  /** File of the CA that vouches for the server, instead of a fingerprint. */
  readonly ca?: string;
  readonly key_file?: string;
  /** Logs in at a server that does not bind its nonces to its certificate. */
  readonly allow_unbound_login?: boolean;
  /** Speaks plain HTTP to hosts beyond loopback. */
  readonly allow_plain_http?: boolean;
}

/** The whole file. */
export interface ProfilesFile {
  readonly default?: string;
  readonly profiles?: Readonly<Record<string, Profile>>;
}

export interface ProfileProblem {
  /** Names of the mappings down to the place. */
  readonly path: readonly string[];
  readonly message: string;
}

export const PROFILE_FIELDS: Readonly<Record<keyof Profile, 'string' | 'boolean'>> = {
  url: 'string',
  tls_fingerprint: 'string',
  ca: 'string',
  key_file: 'string',
  allow_unbound_login: 'boolean',
  allow_plain_http: 'boolean',
};

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export const isProfileName = (name: string): boolean => NAME.test(name);

/** Everything that is wrong with the content of the file. */
export function problemsOfProfiles(value: unknown): readonly ProfileProblem[] {
  if (!isMapping(value)) return [{ path: [], message: 'the file has to be a mapping with "default" and "profiles"' }];
  const { default: standard, profiles, ...others } = value;
  const problems = Object.keys(others).map((name) => unknownKey([name]));
  if (standard !== undefined && typeof standard !== 'string') {
    problems.push({ path: ['default'], message: 'default has to be the name of a profile' });
  }
  if (profiles === undefined || profiles === null) return problems;
  if (!isMapping(profiles))
    return [...problems, { path: ['profiles'], message: 'profiles has to be a mapping of names' }];
  return [...problems, ...Object.entries(profiles).flatMap(([name, profile]) => problemsOf(name, profile))];
}

/** Tells whether a file has no problem. */
export const isProfilesFile = (value: unknown): value is ProfilesFile => problemsOfProfiles(value).length === 0;

function problemsOf(name: string, profile: unknown): readonly ProfileProblem[] {
  const path = ['profiles', name];
  if (!isProfileName(name)) return [{ path, message: `${JSON.stringify(name)} is no name for a profile` }];
  if (!isMapping(profile)) return [{ path, message: `profile ${name} has to be a mapping with at least a url` }];
  const problems: ProfileProblem[] = [];
  if (!Object.hasOwn(profile, 'url')) problems.push({ path, message: `profile ${name} has no url` });
  for (const [field, value] of Object.entries(profile)) {
    if (!isField(field)) problems.push(unknownKey([...path, field]));
    else if (typeof value !== PROFILE_FIELDS[field]) {
      problems.push({ path: [...path, field], message: `${field} has to be a ${PROFILE_FIELDS[field]}` });
    }
  }
  return problems;
}

const isField = (name: string): name is keyof Profile => Object.hasOwn(PROFILE_FIELDS, name);

const unknownKey = (path: readonly string[]): ProfileProblem => ({ path, message: `unknown key "${path.at(-1)}"` });

const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
