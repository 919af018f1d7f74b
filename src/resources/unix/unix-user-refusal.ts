/** What keeps a user from becoming what a module wants, known before anything is tried. */
import type { CommandRefusal, PlanContext } from '../kind.js';
import type { UnixAccounts, UnixUser } from './unix-accounts.js';
import type { UnixUserBody } from './unix-user-body.js';
import type { UserSettings } from './unix-user-difference.js';

interface Aim {
  readonly accounts: UnixAccounts;
  readonly settings: UserSettings;
}

/** Null when nothing is in the way. A drift check tells what differs, and not what keeps it from being repaired. */
export function refuseUser(
  { name }: UnixUserBody,
  user: UnixUser | null,
  aim: Aim,
  context: PlanContext,
): CommandRefusal | null {
  if (context.purpose === 'drift') return null;
  if (user !== null && !user.isLocal) {
    const message = `the user ${name} comes from a directory service and differs; it has to be changed there`;
    return { code: 'account_not_local', message };
  }
  return context.mayAppear ? null : (refuseNumber(name, aim) ?? refuseGroups(aim, context));
}

function refuseNumber(name: string, { accounts, settings: { uid } }: Aim): CommandRefusal | null {
  const holder = uid === null ? undefined : accounts.users.find((other) => other.uid === uid && other.name !== name);
  if (holder === undefined) return null;
  return {
    code: 'id_taken',
    message: `the user ${name} cannot have the uid ${uid}: it is taken by the user ${holder.name}`,
  };
}

function refuseGroups({ accounts, settings: { group, groups } }: Aim, context: PlanContext): CommandRefusal | null {
  const named = [...(group === null ? [] : [group]), ...(groups ?? [])];
  const unknown = named.find((one) => accounts.referred(one) === undefined && !context.declares('group', one));
  if (unknown !== undefined) {
    const message = `there is no group "${unknown}" on this machine; declare it as a group-unix resource before the user`;
    return { code: 'unknown_group', message };
  }
  const remote = groups?.find((one) => accounts.referred(one)?.isLocal === false);
  if (remote === undefined) return null;
  const message = `the group ${remote} comes from a directory service; its members have to be changed there`;
  return { code: 'account_not_local', message };
}
