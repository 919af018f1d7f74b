/** The format of the profiles file: its types, its checks, and a fast parser for the plain form that `orch profile` writes. */

export interface Profile {
  readonly url: string;
  /** SHA-256 of the SPKI of the server's certificate in hex. */
  readonly tls_fingerprint?: string;
  /** Path of the server's CA, instead of a fingerprint. */
  readonly ca?: string;
  readonly key_file?: string;
  /** Allows a login at a server whose nonces are not bound to its certificate. */
  readonly allow_unbound_login?: boolean;
  /** Allows plain HTTP to other hosts than loopback. */
  readonly allow_plain_http?: boolean;
}

export interface ProfilesFile {
  readonly default?: string;
  readonly profiles?: Readonly<Record<string, Profile>>;
}

interface ProfileProblem {
  /** Keys of the mappings down to the mistake. */
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

/** Returns every mistake in the content of the file. */
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

/** Returns true for a file without mistakes. */
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

type PlainMapping = Record<string, unknown>;

/** Begins with a letter and is no YAML keyword such as `true`. */
const PLAIN_NAME = /^(?!(?:true|false|null|yes|no|on|off)$)[A-Za-z][A-Za-z0-9._-]*$/i;
/** Neither a number nor text with a special meaning in YAML. */
const PLAIN_TEXT =
  /^(?!(?:true|false|null|~)$)(?![-+.\d]*(?:[eox][-+\da-f]*)?$)(?!\.(?:inf|nan)$)[A-Za-z0-9/~.](?:[A-Za-z0-9:/._~@+-]*[A-Za-z0-9/._~@+-])?$/i;
const PLAIN_LINE = /^( {0,4})([A-Za-z][A-Za-z0-9._-]*):(?: (\S+))?$/;

/**
 * Parses profiles in the form that `orch profile` writes, without the YAML library, which takes longer to load than the rest
 * of a short command. Returns null for any other text, valid or not; the caller then uses the library.
 */
export function readPlainProfiles(source: string): ProfilesFile | null {
  const file: PlainMapping = {};
  const profiles: PlainMapping = {};
  let profile: PlainMapping | null = null;
  for (const line of source.split('\n')) {
    if (line === '') continue;
    const [, indent = '', key = '', value] = PLAIN_LINE.exec(line) ?? [];
    if (indent === '' && key === 'default' && value !== undefined && PLAIN_NAME.test(value)) {
      if (!put(file, key, value)) return null;
      profile = null;
    } else if (indent === '' && key === 'profiles' && value === undefined) {
      if (!put(file, key, profiles)) return null;
      profile = null;
    } else if (
      indent === '  ' &&
      value === undefined &&
      PLAIN_NAME.test(key) &&
      Object.keys(file).at(-1) === 'profiles'
    ) {
      profile = {};
      if (!put(profiles, key, profile)) return null;
    } else if (indent === '    ' && value !== undefined && profile !== null) {
      const content = contentOf(key, value);
      if (content === null || !put(profile, key, content)) return null;
    } else return null;
  }
  const isEmpty = 'profiles' in file && Object.keys(profiles).length === 0;
  return !isEmpty && isProfilesFile(file) ? file : null;
}

function contentOf(field: string, value: string): string | boolean | null {
  const kind = Object.entries(PROFILE_FIELDS).find(([name]) => name === field)?.[1];
  if (kind === 'boolean') return value === 'true' || value === 'false' ? value === 'true' : null;
  return kind === 'string' && PLAIN_TEXT.test(value) ? value : null;
}

/** Sets a new key. Returns false for an existing one. */
function put(mapping: PlainMapping, key: string, value: unknown): boolean {
  if (Object.hasOwn(mapping, key)) return false;
  mapping[key] = value;
  return true;
}
