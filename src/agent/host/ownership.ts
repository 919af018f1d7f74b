/** Who a file or directory shall belong to, in numbers. */
import { Fault } from '../../kernel/fault.js';
import type { Accounts, Principal } from '../../resources/host.js';

export interface Owners {
  readonly uid: number;
  readonly gid: number;
}

/** The ids of the names, or those that are there. Throws `unknown_owner` and `unknown_group`. */
export function ownersOf(
  wanted: { readonly owner: Principal; readonly group: Principal },
  there: Owners,
  accounts: Accounts,
): Owners {
  const uid = wanted.owner === null ? there.uid : accounts.uid(wanted.owner);
  const gid = wanted.group === null ? there.gid : accounts.gid(wanted.group);
  if (uid === undefined) throw new Fault('unknown_owner', `there is no user "${wanted.owner}" on this machine`);
  if (gid === undefined) throw new Fault('unknown_group', `there is no group "${wanted.group}" on this machine`);
  return { uid, gid };
}

export const isSameOwner = (a: Owners, b: Owners): boolean => a.uid === b.uid && a.gid === b.gid;
