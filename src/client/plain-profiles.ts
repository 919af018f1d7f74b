/**
 * Profiles as `orch profile` writes them, without the YAML library, which takes longer to load than all the rest of a short command.
 * Whatever is written in another way is left to the library.
 */
import { isProfilesFile, PROFILE_FIELDS, type ProfilesFile } from './profile.js';

type Mapping = Record<string, unknown>;

/** Letters first, and none of the words that YAML takes for something else than a text. */
const NAME = /^(?!(?:true|false|null|yes|no|on|off)$)[A-Za-z][A-Za-z0-9._-]*$/i;
/** Neither a number, nor anything with a meaning in YAML. */
const TEXT =
  /^(?!(?:true|false|null|~)$)(?![-+.\d]*(?:[eox][-+\da-f]*)?$)(?!\.(?:inf|nan)$)[A-Za-z0-9/~.](?:[A-Za-z0-9:/._~@+-]*[A-Za-z0-9/._~@+-])?$/i;
const LINE = /^( {0,4})([A-Za-z][A-Za-z0-9._-]*):(?: (\S+))?$/;

/** Null for a text that is not in that form, right or wrong. */
export function readPlainProfiles(source: string): ProfilesFile | null {
  const file: Mapping = {};
  const profiles: Mapping = {};
  let profile: Mapping | null = null;
  for (const line of source.split('\n')) {
    if (line === '') continue;
    const [, indent = '', key = '', value] = LINE.exec(line) ?? [];
    if (indent === '' && key === 'default' && value !== undefined && NAME.test(value)) {
      if (!put(file, key, value)) return null;
      profile = null;
    } else if (indent === '' && key === 'profiles' && value === undefined) {
      if (!put(file, key, profiles)) return null;
      profile = null;
    } else if (indent === '  ' && value === undefined && NAME.test(key) && Object.keys(file).at(-1) === 'profiles') {
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
  return kind === 'string' && TEXT.test(value) ? value : null;
}

/** False for a key that is there already. */
function put(mapping: Mapping, key: string, value: unknown): boolean {
  if (Object.hasOwn(mapping, key)) return false;
  mapping[key] = value;
  return true;
}
