/** The operator's profiles in `config.yaml`, one for each orchestrator. */
import { readFileSync } from 'node:fs';
import { Fault, messageOf, systemCodeOf } from '../kernel/fault.js';
import { writeOwnFile } from './operator-files.js';
import { isProfileName, type Profile, readPlainProfiles } from './profile-file.js';

export interface Profiles {
  readonly path: string;
  /** Name of the default profile, or null. */
  readonly standard: string | null;
  readonly byName: Readonly<Record<string, Profile>>;
}

const MAX_BYTES = 256 * 1024;

/**
 * Loads the profiles of a file; a missing file has none.
 * @throws Fault `invalid_config` with every mistake, its line and column
 */
export async function loadProfiles(path: string): Promise<Profiles> {
  const source = readSource(path);
  if (source === null) return { path, standard: null, byName: {} };
  const file = readPlainProfiles(source) ?? (await import('./profiles-yaml.js')).parseProfiles(source, path);
  return { path, standard: file.default ?? null, byName: file.profiles ?? {} };
}

/**
 * Writes the profiles atomically, readable only by the owner, and keeps the comments of the file.
 * @throws Fault `invalid_config` when it cannot be written
 */
export async function saveProfiles({ path, standard, byName }: Profiles): Promise<void> {
  const { editProfiles } = await import('./profiles-yaml.js');
  const file = { ...(standard === null ? {} : { default: standard }), profiles: byName };
  const text = editProfiles(readSource(path) ?? '', file);
  try {
    writeOwnFile(path, text);
  } catch (cause) {
    throw new Fault('invalid_config', `${path} cannot be written: ${messageOf(cause)}`, { cause });
  }
}

/** Returns the profiles with a profile added or replaced. Throws `usage` for an invalid name. */
export function withProfile(profiles: Profiles, name: string, profile: Profile): Profiles {
  if (!isProfileName(name)) {
    throw new Fault('usage', `${JSON.stringify(name)} is no name for a profile`, {
      hint: '1-64 of A-Z a-z 0-9 . _ -, starting with a letter or digit',
    });
  }
  return { ...profiles, byName: { ...profiles.byName, [name]: profile } };
}

/** Returns the profiles without one of them. Throws `profile_not_found`. */
export function withoutProfile(profiles: Profiles, name: string): Profiles {
  requireProfile(profiles, name);
  const { [name]: _, ...byName } = profiles.byName;
  return { ...profiles, byName, standard: profiles.standard === name ? null : profiles.standard };
}

/** Returns a profile by name. Throws `profile_not_found`; `from` is the source of the name, such as `--profile`. */
export function requireProfile(profiles: Profiles, name: string, from = 'the command'): Profile {
  const profile = Object.hasOwn(profiles.byName, name) ? profiles.byName[name] : undefined;
  if (profile) return profile;
  const names = Object.keys(profiles.byName);
  throw new Fault('profile_not_found', `${from} names the profile ${JSON.stringify(name)}, which does not exist`, {
    hint: names.length > 0 ? `there are: ${names.join(', ')}` : `make it with: orch profile create ${name} --url URL`,
    data: { path: profiles.path, profiles: names },
  });
}

function readSource(path: string): string | null {
  try {
    const source = readFileSync(path, 'utf8');
    if (source.length > MAX_BYTES) throw new Fault('invalid_config', `${path} is larger than ${MAX_BYTES} bytes`);
    return source;
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return null;
    if (cause instanceof Fault) throw cause;
    throw new Fault('invalid_config', `${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
}
