/** `group-unix`: a group of Linux or macOS with its ID. Users declare the membership. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import type { CommandRefusal } from './command.js';
import { type Decision, defineResource, type FieldChange, type PlanContext } from './kind.js';
import { changeLinuxGroup, createLinuxGroup, removeLinuxGroup } from './unix/linux-user-commands.js';
import { changeMacGroup, createMacGroup, removeMacGroup } from './unix/mac-user-commands.js';
import { readUnixAccounts } from './unix/read-unix-accounts.js';
import { unixAccountFailure } from './unix/unix-account-failure.js';
import {
  checkUnixId,
  checkUnixNames,
  LARGEST_UINT32,
  MAX_ACCOUNT_NAME,
  type UnixAccounts,
  type UnixGroup,
} from './unix/unix-accounts.js';

const schema = closed({
  name: Type.String({ minLength: 1, maxLength: MAX_ACCOUNT_NAME, description: 'Name of the group' }),
  gid: optional(Type.Integer({ minimum: 0, maximum: LARGEST_UINT32, description: 'Numeric id; null: not managed' })),
});

type GroupBody = Type.Static<typeof schema>;

type UnixGroupFact =
  | { readonly is: 'unreadable'; readonly refusal: CommandRefusal }
  /** The group is null when none has that name. */
  | { readonly is: 'read'; readonly group: UnixGroup | null; readonly accounts: UnixAccounts };

export const groupUnix = defineResource<GroupBody, UnixGroupFact>({
  kind: 'group-unix',
  family: 'group',
  platforms: ['linux', 'macos'],
  schema,
  check: ({ name, gid }) => [...checkUnixNames({ '/name': name }), ...checkUnixId('gid', gid)],
  identity: ({ name }) => name,
  requires: () => [],
  queried: true,
  thingsOf: (_host, wants) => wants.map(({ gid }) => (gid == null ? null : `gid ${gid}`)),

  obstacles(host, wants, removals) {
    const numbers = new Set(wants.flatMap(({ body: { gid } }) => gid ?? []));
    if (numbers.size === 0) return [];
    const accounts = host.accounts();
    // A user takes the group of its own name along.
    return removals.filter(
      ({ kind, identity }) =>
        (kind === 'group-unix' || kind === 'user-unix') && numbers.has(accounts.gid(identity) ?? -1),
    );
  },

  async read(host, wants) {
    const { accounts, refusal } = await readUnixAccounts(host, { users: [], groups: wants.map(({ name }) => name) });
    if (refusal) return wants.map(() => ({ is: 'unreadable', refusal }));
    return wants.map(({ name }) => ({ is: 'read', group: accounts.group(name) ?? null, accounts }));
  },

  exists: (have) => have.is === 'unreadable' || have.group !== null,

  plan({ name, gid }, have, context): Decision {
    if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
    const { group, accounts } = have;
    const isMac = accounts.platform === 'macos';
    const number = gid ?? null;
    if (group !== null && (number === null || number === group.gid)) return { action: 'none' };
    const refusal = refuseGroup(name, number, have, context);
    if (refusal) return { action: 'fail', ...refusal };
    if (group === null || number === null) {
      const changes: FieldChange[] = number === null ? [] : [{ field: 'gid', before: null, after: String(number) }];
      return { action: 'create', changes, steps: (isMac ? createMacGroup : createLinuxGroup)(name, number) };
    }
    const old = group.gid === null ? null : String(group.gid);
    return {
      action: 'update',
      changes: [{ field: 'gid', before: old, after: String(number) }],
      steps: isMac ? changeMacGroup(group, number, accounts) : changeLinuxGroup(name, number),
      reason: `files still belong to the number ${old ?? 'that they had'}`,
    };
  },

  planRemoval({ name }, have, context): Decision {
    if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
    const { group, accounts } = have;
    if (group === null) return { action: 'none' };
    if (!group.isLocal) return { action: 'release', reason: `the group ${name} comes from a directory service now` };
    const primary = accounts.users.filter(({ gid }) => gid !== null && gid === group.gid).map((user) => user.name);
    const users = primary.filter((user) => !context.removes('user', user));
    if (users.length > 0) {
      const message = `the group ${name} is the primary group of ${listed(users)}; give them another one first`;
      return { action: 'fail', code: 'removal_refused', message };
    }
    const members = group.members.filter((user) => !context.removes('user', user));
    const reason = members.length === 0 ? {} : { reason: `it still has the members ${listed(members)}` };
    const steps = (accounts.platform === 'macos' ? removeMacGroup : removeLinuxGroup)(name);
    return { action: 'remove', changes: [], steps, ...reason };
  },

  keepsWithheld: true,
  explain: (host, { name }, step, result) => unixAccountFailure(host, `the group ${name}`, step, result),
});

function refuseGroup(
  name: string,
  number: number | null,
  { group, accounts }: Extract<UnixGroupFact, { is: 'read' }>,
  { purpose, mayAppear, removes }: PlanContext,
): CommandRefusal | null {
  if (purpose === 'drift') return null;
  if (group !== null && !group.isLocal) {
    const message = `the group ${name} comes from a directory service and differs; it has to be changed there`;
    return { code: 'account_not_local', message };
  }
  const holder = number === null || mayAppear ? undefined : accounts.groupOf(number);
  if (holder === undefined || removes('group', holder.name)) return null;
  // A user takes the group of its own name along.
  if (removes('user', holder.name) && accounts.user(holder.name)?.gid === holder.gid) return null;
  const message = `the group ${name} cannot have the gid ${number}: it is taken by the group ${holder.name}`;
  return { code: 'id_taken', message };
}

/** At most ten names; a group can have thousands. */
function listed(names: readonly string[]): string {
  const more = names.length > 10 ? ` and ${names.length - 10} more` : '';
  return `${names.slice(0, 10).join(', ')}${more}`;
}
