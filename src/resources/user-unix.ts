/** `user-unix`: a user of Linux or macOS with its ID, groups, home directory, shell, password hash and public keys. */
import * as Type from 'typebox';
import { canonicalJson } from '../kernel/json.js';
import { closed, optional } from '../kernel/schema.js';
import type { CommandRefusal } from './command.js';
import type { RunStep } from './host.js';
import { type BodyProblem, type Decision, defineResource, type PlanContext } from './kind.js';
import { MAX_KEY_LINE, problemOfKey } from './unix/authorized-keys.js';
import { changeLinuxUser, createLinuxUser, removeLinuxUser, restoreLinuxGroup } from './unix/linux-user-commands.js';
import { changeMacUser, createMacUser, removeMacUser } from './unix/mac-user-commands.js';
import { readUnixAccounts } from './unix/read-unix-accounts.js';
import { unixAccountFailure } from './unix/unix-account-failure.js';
import {
  checkGroupReferences,
  checkUnixId,
  checkUnixNames,
  LARGEST_UINT32,
  MAX_ACCOUNT_NAME,
  parseUnixId,
  type UnixAccounts,
  type UnixUser,
} from './unix/unix-accounts.js';
import { problemOfUnixPath } from './unix/unix-path.js';
import { compareUser, refuseUser, type UserDifference } from './unix/unix-user-difference.js';
import { compareDetails, readUserDetails, type UserKeysFact } from './unix/user-details.js';

/** Name or numeric ID of a supplementary group. */
const Group = Type.String({ minLength: 1, maxLength: MAX_ACCOUNT_NAME });

const unixUserSchema = closed({
  name: Type.String({ minLength: 1, maxLength: MAX_ACCOUNT_NAME, description: 'Name of the user' }),
  uid: optional(Type.Integer({ minimum: 0, maximum: LARGEST_UINT32, description: 'Numeric id; null: not managed' })),
  primary_group: optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_ACCOUNT_NAME,
      description: 'Name or numeric id of the primary group; null: not managed',
    }),
  ),
  additional_groups: optional(
    Type.Array(Group, {
      description: 'All groups that the user is in besides, by name or numeric id; null: not managed',
    }),
  ),
  append_groups: optional(
    Type.Array(Group, {
      description: 'Groups that the user is in besides, by name or numeric id; other groups of the user stay',
    }),
  ),
  home: optional(Type.String({ minLength: 1, description: 'Path of the home directory; null: not managed' })),
  shell: optional(Type.String({ minLength: 1, description: 'Path of the login shell; null: not managed' })),
  comment: optional(
    Type.String({ maxLength: 256, description: 'Name and other details of the person; null: not managed' }),
  ),
  password_hash: optional(
    Type.String({
      minLength: 1,
      maxLength: 512,
      description: 'Hash of the password as in /etc/shadow, such as mkpasswd prints it; null: not managed',
    }),
  ),
  authorized_keys: optional(
    closed(
      {
        keys: Type.Array(Type.String({ minLength: 1, maxLength: MAX_KEY_LINE }), {
          description: 'Lines of public keys that may log in: options if need be, type, key and comment',
        }),
        exclusive: optional(Type.Boolean({ description: 'True: no other key may log in' })),
      },
      { description: 'Public keys in ~/.ssh/authorized_keys; null: not managed' },
    ),
  ),
  system: optional(
    Type.Boolean({ description: 'Create it as a system account, without a home directory; not compared afterwards' }),
  ),
});

export type UnixUserBody = Type.Static<typeof unixUserSchema>;

function checkUnixUser(body: UnixUserBody): BodyProblem[] {
  const { name, uid, primary_group, additional_groups, append_groups, home, shell } = body;
  const groups = [
    ...(additional_groups ?? []).map((group, at) => [`/additional_groups/${at}`, group]),
    ...(append_groups ?? []).map((group, at) => [`/append_groups/${at}`, group]),
  ];
  return [
    ...checkDetails(body),
    ...checkUnixNames({ '/name': name }),
    ...checkUnixId('uid', uid),
    ...checkGroupReferences({
      ...(primary_group == null ? {} : { '/primary_group': primary_group }),
      ...Object.fromEntries(groups),
    }),
    // Some system accounts live in the root directory.
    ...(home == null || home === '/' ? [] : checkField('home', home)),
    ...(shell == null ? [] : checkField('shell', shell)),
  ];
}

/** A hash of crypt(3), perhaps behind the mark of a locked account, or only marks that no password fits. */
const HASH = /^(?:!{0,2}\$[0-9A-Za-z]+\$[!-9;-~]+|[!*]{1,2})$/;

function checkDetails(body: UnixUserBody): BodyProblem[] {
  const { additional_groups, append_groups, authorized_keys, comment, password_hash } = body;
  const problems: BodyProblem[] = [];
  if (additional_groups != null && append_groups != null) {
    problems.push({ path: '/append_groups', message: 'additional_groups and append_groups exclude each other' });
  }
  if (/[:\p{Cc}]/u.test(comment ?? '')) {
    problems.push({ path: '/comment', message: 'comment must be one line without ":"' });
  }
  if (password_hash != null && !HASH.test(password_hash)) {
    const message = 'password_hash must be a hash such as "mkpasswd" prints it, "$…$…", and not the password itself';
    problems.push({ path: '/password_hash', message });
  }
  for (const [at, key] of (authorized_keys?.keys ?? []).entries()) {
    const problem = problemOfKey(key);
    if (problem !== null) problems.push({ path: `/authorized_keys/keys/${at}`, message: `the key ${problem}` });
  }
  return problems;
}

/** Returns the body that fulfils both declarations of a user, which may append groups of their own; null if none does. */
function agreedUser(one: UnixUserBody, other: UnixUserBody): UnixUserBody | null {
  const both: Record<string, unknown> = { ...other, ...one };
  for (const [field, value] of Object.entries(other)) {
    const own = one[field as keyof UnixUserBody];
    if (own == null || value == null) both[field] = own ?? value;
    else if (field === 'append_groups')
      both[field] = [...new Set([...(one.append_groups ?? []), ...(other.append_groups ?? [])])];
    else if (canonicalJson(own) !== canonicalJson(value)) return null;
  }
  return both.additional_groups != null && both.append_groups != null ? null : (both as UnixUserBody);
}

function checkField(field: 'home' | 'shell', path: string): readonly BodyProblem[] {
  const forbidden = /[:\p{C}]/u.exec(path)?.[0];
  const problem =
    problemOfUnixPath(path) ?? (forbidden === undefined ? null : `must not contain ${JSON.stringify(forbidden)}`);
  return problem === null ? [] : [{ path: `/${field}`, message: `${field} ${problem}` }];
}

type UnixUserFact =
  | { readonly is: 'unreadable'; readonly refusal: CommandRefusal }
  | {
      readonly is: 'read';
      /** Null without a user of that name. */
      readonly user: UnixUser | null;
      readonly accounts: UnixAccounts;
      /** An unused ID for systems whose tools do not choose one; null where it is not needed. */
      readonly freeUid: number | null;
      /** True when the wanted shell does not exist. */
      readonly lacksShell: boolean;
      /** Hash of the password; null when it is not managed, or there is none. */
      readonly hash: string | null;
      /** The file with public keys; null when they are not managed. */
      readonly keys: UserKeysFact | null;
    };

type Read = Extract<UnixUserFact, { is: 'read' }>;

export const userUnix = defineResource<UnixUserBody, UnixUserFact>({
  kind: 'user-unix',
  family: 'user',
  platforms: ['linux', 'macos'],
  schema: unixUserSchema,
  check: checkUnixUser,
  identity: ({ name }) => name,
  agreed: agreedUser,
  // A new user joins the group of its own name, when there is one.
  requires: (body) =>
    [...(body.primary_group == null ? [body.name] : []), ...groupsIn(body)]
      .filter((group) => parseUnixId(group) === undefined)
      .map((identity) => ({ family: 'group', identity })),
  queried: true,
  thingsOf: (_host, wants) => wants.map(({ uid }) => (uid == null ? null : `uid ${uid}`)),

  obstacles(host, wants, removals) {
    const numbers = new Set(wants.flatMap(({ body: { uid } }) => uid ?? []));
    if (numbers.size === 0) return [];
    const accounts = host.accounts();
    return removals.filter(({ kind, identity }) => kind === 'user-unix' && numbers.has(accounts.uid(identity) ?? -1));
  },

  async read(host, wants, purpose) {
    const { accounts, refusal } = await readUnixAccounts(host, {
      users: wants.map(({ name }) => name),
      groups: wants.flatMap(groupsIn),
    });
    if (refusal) return wants.map(() => ({ is: 'unreadable', refusal }));
    const shells = [...new Set(wants.flatMap(({ shell }) => shell ?? []))];
    const facts = host.observe(shells.map((path) => ({ path, content: false, entries: false })));
    const missing = new Set(shells.filter((_, at) => facts[at]?.type === 'absent'));
    const free = freeUids(wants, accounts);
    const details = purpose === 'removal' ? [] : readUserDetails(host, wants, accounts);
    return wants.map(({ name, shell }, at) => {
      const { refusal: problem = null, hash = null, keys = null } = details[at] ?? {};
      if (problem !== null) return { is: 'unreadable', refusal: problem };
      const user = accounts.user(name) ?? null;
      return {
        is: 'read',
        user,
        accounts,
        freeUid: free[at] ?? null,
        lacksShell: missing.has(shell ?? ''),
        hash,
        keys,
      };
    });
  },

  exists: (have) => have.is === 'unreadable' || have.user !== null,

  plan(want, have, context): Decision {
    if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
    const { user, accounts } = have;
    const difference = compareUser(want, user, accounts);
    const details = compareDetails(want, have);
    const account = stepsFor(want, have, difference, context);
    const steps = [...account, ...details.steps];
    if (user !== null && steps.length === 0) return { action: 'none' };
    if (user === null || account.length > 0 || details.isOfAccount) {
      const refusal = refuseUser(want, user, { accounts, settings: difference.settings }, context);
      if (refusal) return { action: 'fail', ...refusal };
    }
    const reason = reasonOf(want, have, difference, context);
    const changes = [...difference.changes, ...details.changes];
    return { action: user === null ? 'create' : 'update', changes, steps, ...(reason === '' ? {} : { reason }) };
  },

  planRemoval(last, have, context): Decision {
    if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
    const { user, accounts } = have;
    if (user === null) return { action: 'none' };
    if (!user.isLocal) return { action: 'release', reason: `the user ${user.name} comes from a directory service now` };
    const steps: readonly RunStep[] =
      accounts.platform === 'macos'
        ? removeMacUser(user.name, accounts)
        : [removeLinuxUser(user.name), ...keepOwnGroup(last, { user, accounts }, context)];
    return { action: 'remove', changes: [], steps, reason: `${user.home ?? 'its home directory'} stays` };
  },

  keepsWithheld: true,
  explain: (host, { name }, step, result) => unixAccountFailure(host, `the user ${name}`, step, result),
});

/** Returns the groups in a body, by name or number. */
const groupsIn = ({ primary_group, additional_groups, append_groups }: UnixUserBody): readonly string[] => [
  ...(primary_group == null ? [] : [primary_group]),
  ...(additional_groups ?? []),
  ...(append_groups ?? []),
];

function stepsFor(
  { name, system }: UnixUserBody,
  { user, accounts, freeUid }: Read,
  { settings }: UserDifference,
  context: PlanContext,
): readonly RunStep[] {
  const isSystem = system === true;
  const mac = { name, user, settings, isSystem, freeUid, accounts };
  if (accounts.platform === 'macos') return user === null ? createMacUser(mac) : changeMacUser(mac);
  if (user === null) {
    const hasOwn = accounts.group(name) !== undefined || context.declares('group', name);
    return createLinuxUser(name, { ...settings, group: settings.group ?? (hasOwn ? name : null) }, isSystem);
  }
  return Object.values(settings).every((value) => value === null) ? [] : changeLinuxUser(name, settings);
}

/** Returns the side effects that a change does not have, as a reason for display. */
function reasonOf(
  { shell }: UnixUserBody,
  { user, lacksShell }: Read,
  { settings }: UserDifference,
  { declares, mayAppear }: PlanContext,
): string {
  const parts: string[] = [];
  const isShellMissing = settings.shell !== null && lacksShell && !mayAppear && !declares('path', shell ?? '');
  if (isShellMissing) parts.push(`there is no ${shell} on this machine, so no login with it is possible`);
  if (user === null) return parts.join('; ');
  if (settings.uid !== null) parts.push(`files outside its home directory still belong to the number ${user.uid}`);
  if (settings.home !== null) parts.push(`nothing is moved from ${user.home ?? 'the old home directory'}`);
  return parts.join('; ');
}

/** Restores the group of the same name, which `userdel` also deletes if it has no other members, if it must stay. */
function keepOwnGroup(
  { name, primary_group }: UnixUserBody,
  { user, accounts }: { readonly user: UnixUser; readonly accounts: UnixAccounts },
  context: PlanContext,
): readonly RunStep[] {
  const own = accounts.group(name);
  if (own?.gid == null || own.gid !== user.gid) return [];
  const isNamed = primary_group != null && accounts.referred(primary_group) === own;
  return isNamed || context.declares('group', name) ? [restoreLinuxGroup(name, own.gid)] : [];
}

/** First IDs of service accounts and of ordinary users on macOS. */
const FIRST = { system: 200, ordinary: 501 };

/** Returns a different unused ID for each new user, and null for the others. macOS tools accept any given ID. */
function freeUids(wants: readonly UnixUserBody[], accounts: UnixAccounts): readonly (number | null)[] {
  const taken = new Set<number | null | undefined>([
    ...accounts.users.map(({ uid }) => uid),
    ...wants.map(({ uid }) => uid),
  ]);
  const next = { ...FIRST };
  return wants.map(({ name, uid, system }) => {
    if (uid != null || accounts.user(name)?.uid != null) return null;
    const range = system === true ? 'system' : 'ordinary';
    while (taken.has(next[range])) next[range] += 1;
    taken.add(next[range]);
    return next[range];
  });
}
