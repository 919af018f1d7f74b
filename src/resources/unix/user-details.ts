/** Details of a user beside its entry in the accounts: the hash of the password, and public keys. */
import type { CommandRefusal } from '../command.js';
import { type Host, OWNERS_GROUP, type Step } from '../host.js';
import type { FieldChange } from '../kind.js';
import type { UnixUserBody } from '../user-unix.js';
import {
  type AuthorizedKey,
  type KeyPlaces,
  keyRequests,
  keySteps,
  keysIn,
  parseAuthorizedKey,
  problemOfHome,
  readKeys,
  textOf,
  withKeys,
} from './authorized-keys.js';
import { setPasswordHash } from './linux-user-commands.js';
import type { UnixAccounts, UnixUser } from './unix-accounts.js';

/** The file with public keys in the home directory of a user. */
export interface UserKeysFact {
  readonly places: KeyPlaces;
  readonly text: string;
}

interface Details {
  readonly refusal?: CommandRefusal;
  readonly hash?: string | null;
  readonly keys?: UserKeysFact;
}

/** Reads the managed details of each user, in order. */
export function readUserDetails(
  host: Host,
  wants: readonly UnixUserBody[],
  accounts: UnixAccounts,
): readonly Details[] {
  if (!wants.some((want) => want.password_hash != null || want.authorized_keys != null || want.comment != null))
    return [];
  const isHashed = host.platform === 'linux' && wants.some(({ password_hash }) => password_hash != null);
  const hashes = isHashed ? readHashes(host) : NO_HASHES;
  const homes = wants.some(({ authorized_keys }) => authorized_keys != null) ? homesOfNew(host) : '';
  return wants.map((want): Details => {
    const user = accounts.user(want.name) ?? null;
    const field = want.password_hash != null ? 'password_hash' : want.comment != null ? 'comment' : null;
    if (host.platform !== 'linux' && field !== null) return { refusal: onLinuxOnly(field, host.platform) };
    if (want.password_hash != null && 'code' in hashes) return { refusal: hashes };
    const hash = 'code' in hashes ? null : (hashes.get(want.name) ?? null);
    return { hash, ...(want.authorized_keys == null ? {} : readFile(host, want, user, homes)) };
  });
}

const NO_HASHES: ReadonlyMap<string, string> = new Map();

const onLinuxOnly = (field: string, platform: string): CommandRefusal => ({
  code: 'unsupported_on_platform',
  message: `${field} is possible on linux only, and this is a machine with ${platform}`,
});

const SHADOW = '/etc/shadow';

/** Returns the hashes of all users, or why they cannot be read. */
function readHashes(host: Host): ReadonlyMap<string, string> | CommandRefusal {
  const [fact] = host.observe([{ path: SHADOW, content: true, entries: false }]);
  if (fact?.type === 'file' && fact.content.kind === 'text') {
    const lines = fact.content.text.split('\n').map((line) => line.split(':'));
    return new Map(lines.map(([name = '', hash = '']) => [name, hash]));
  }
  const why = fact?.type === 'unreadable' ? fact.message : 'it is no file of text';
  return { code: 'permission_denied', message: `the passwords of this machine cannot be read from ${SHADOW}: ${why}` };
}

/** Returns the directory in which new users get their home directories. */
function homesOfNew(host: Host): string {
  if (host.platform === 'macos') return '/Users';
  const [fact] = host.observe([{ path: '/etc/default/useradd', content: true, entries: false }]);
  const text = fact?.type === 'file' && fact.content.kind === 'text' ? fact.content.text : '';
  return /^HOME=(\/\S*[^/\s])\s*$/m.exec(text)?.[1] ?? '/home';
}

function readFile(host: Host, want: UnixUserBody, user: UnixUser | null, homes: string): Details {
  const { name } = want;
  const isHomeless = user === null && want.home == null && want.system === true;
  const home = want.home ?? (user === null ? (isHomeless ? null : `${homes}/${name}`) : user.home);
  const problem = problemOfHome(name, home);
  if (problem !== null || home === null) return problem === null ? {} : { refusal: problem };
  const places = { home, facts: host.observe(keyRequests(home)) };
  // The home directory of a new user is made with it, and a changed one may be made by another resource.
  const read = readKeys(places, { name, uid: user?.home === home ? user.uid : (want.uid ?? null) });
  return 'code' in read ? { refusal: read } : { keys: { places, text: read.text } };
}

interface DetailsDifference {
  readonly changes: readonly FieldChange[];
  readonly steps: readonly Step[];
  /** True for changes of the account itself. */
  readonly isOfAccount: boolean;
}

/** Compares the managed details with what was read. */
export function compareDetails(
  { name, password_hash, authorized_keys }: UnixUserBody,
  have: { readonly user: UnixUser | null; readonly hash: string | null; readonly keys: UserKeysFact | null },
): DetailsDifference {
  const changes: FieldChange[] = [];
  const steps: Step[] = [];
  const isOfAccount = password_hash != null && password_hash !== have.hash;
  if (isOfAccount) {
    // Not even a hash is shown.
    changes.push({ field: 'password_hash', before: null, after: null });
    steps.push(setPasswordHash(name, password_hash));
  }
  if (authorized_keys == null || have.keys === null) return { changes, steps, isOfAccount };
  const { places, text } = have.keys;
  const wanted = authorized_keys.keys.flatMap((line) => parseAuthorizedKey(line) ?? []);
  const isExclusive = authorized_keys.exclusive === true;
  const content = isExclusive ? textOf(wanted) : withKeys(text, wanted);
  if (content !== text) {
    const there = keysIn(text).filter(({ id }) => isExclusive || wanted.some((key) => key.id === id));
    changes.push({ field: 'authorized_keys', before: labelsOf(there), after: labelsOf(wanted) });
    // A local user has the right login group only after the steps that make or change it.
    const { user } = have;
    const isOther = user !== null && !user.isLocal && user.gid !== null;
    steps.push(...keySteps(places, name, isOther ? String(user.gid) : OWNERS_GROUP, content));
  }
  return { changes, steps, isOfAccount };
}

const labelsOf = (keys: readonly AuthorizedKey[]): string => keys.map(({ label }) => label).join(', ');
