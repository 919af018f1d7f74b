/** Users and groups of macOS, from what `dscl` writes of the local directory. */
import type { Command } from '../command.js';
import { parsePlist } from './parse-plist.js';
import { parseUnixId } from './unix-account-name.js';
import type { UnixGroup, UnixUser } from './unix-accounts.js';

const readAll = (path: string, ...keys: readonly string[]): Command => ({
  argv: ['dscl', '-plist', '.', '-readall', path, 'RecordName', ...keys],
});

/** Only what is needed: a record can hold pictures. */
export const READ_MAC_USERS = readAll('/Users', 'UniqueID', 'PrimaryGroupID', 'NFSHomeDirectory', 'UserShell');
export const READ_MAC_GROUPS = readAll('/Groups', 'PrimaryGroupID', 'GroupMembership');

/** Null when it is not what `dscl` writes. */
export function parseMacUsers(text: string): readonly UnixUser[] | null {
  return (
    recordsOf(text)?.map((record) => ({
      name: record.first('RecordName') ?? '',
      uid: numberOf(record.first('UniqueID')),
      gid: numberOf(record.first('PrimaryGroupID')),
      home: record.first('NFSHomeDirectory'),
      shell: record.first('UserShell'),
      isLocal: true,
    })) ?? null
  );
}

export function parseMacGroups(text: string): readonly UnixGroup[] | null {
  return (
    recordsOf(text)?.map((record) => ({
      name: record.first('RecordName') ?? '',
      gid: numberOf(record.first('PrimaryGroupID')),
      members: record.all('GroupMembership'),
      isLocal: true,
    })) ?? null
  );
}

interface MacRecord {
  /** Every value of an attribute has a list of its own; other names of the record come after the first. */
  all(attribute: string): readonly string[];
  first(attribute: string): string | null;
}

function recordsOf(text: string): readonly MacRecord[] | null {
  const list = parsePlist(text);
  if (!Array.isArray(list)) return null;
  return list.flatMap((record) => {
    if (!(record instanceof Map)) return [];
    const all = (attribute: string): readonly string[] => {
      const values: unknown = record.get(`dsAttrTypeStandard:${attribute}`);
      return Array.isArray(values) ? values.filter((value) => typeof value === 'string') : [];
    };
    return [{ all, first: (attribute: string) => all(attribute)[0] ?? null }];
  });
}

/** macOS writes the number of `nobody` as -2. */
function numberOf(digits: string | null): number | null {
  if (digits === null) return null;
  const id = parseUnixId(digits.startsWith('-') ? String(2 ** 32 - Number(digits.slice(1))) : digits);
  return id ?? null;
}
