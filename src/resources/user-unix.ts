/** `user-unix`: a user of Linux or macOS with its ID, groups, home directory and shell. Passwords are never changed. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import type { CommandRefusal } from './command.js';
import type { RunStep } from './host.js';
import { type BodyProblem, type Decision, defineResource, type PlanContext } from './kind.js';
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
  home: optional(Type.String({ minLength: 1, description: 'Path of the home directory; null: not managed' })),
  shell: optional(Type.String({ minLength: 1, description: 'Path of the login shell; null: not managed' })),
  system: optional(
    Type.Boolean({ description: 'Create it as a system account, without a home directory; not compared afterwards' }),
  ),
});

export type UnixUserBody = Type.Static<typeof unixUserSchema>;

function checkUnixUser({ name, uid, primary_group, additional_groups, home, shell }: UnixUserBody): BodyProblem[] {
  const groups = (additional_groups ?? []).map((group, at) => [`/additional_groups/${at}`, group]);
  return [
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
    };

type Read = Extract<UnixUserFact, { is: 'read' }>;

export const userUnix = defineResource<UnixUserBody, UnixUserFact>({
  kind: 'user-unix',
  family: 'user',
  platforms: ['linux', 'macos'],
  schema: unixUserSchema,
  check: checkUnixUser,
  identity: ({ name }) => name,
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

  async read(host, wants) {
    const { accounts, refusal } = await readUnixAccounts(host, {
      users: wants.map(({ name }) => name),
      groups: wants.flatMap(groupsIn),
    });
    if (refusal) return wants.map(() => ({ is: 'unreadable', refusal }));
    const shells = [...new Set(wants.flatMap(({ shell }) => shell ?? []))];
    const facts = host.observe(shells.map((path) => ({ path, content: false, entries: false })));
    const missing = new Set(shells.filter((_, at) => facts[at]?.type === 'absent'));
    const free = freeUids(wants, accounts);
    return wants.map(({ name, shell }, at) => ({
      is: 'read',
      user: accounts.user(name) ?? null,
      accounts,
      freeUid: free[at] ?? null,
      lacksShell: missing.has(shell ?? ''),
    }));
  },

  exists: (have) => have.is === 'unreadable' || have.user !== null,

  plan(want, have, context): Decision {
    if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
    const { user, accounts } = have;
    const difference = compareUser(want, user, accounts);
    const steps = stepsFor(want, have, difference, context);
    if (user !== null && steps.length === 0) return { action: 'none' };
    const refusal = refuseUser(want, user, { accounts, settings: difference.settings }, context);
    if (refusal) return { action: 'fail', ...refusal };
    const reason = reasonOf(want, have, difference, context);
    const { changes } = difference;
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
const groupsIn = ({ primary_group, additional_groups }: UnixUserBody): readonly string[] => [
  ...(primary_group == null ? [] : [primary_group]),
  ...(additional_groups ?? []),
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
