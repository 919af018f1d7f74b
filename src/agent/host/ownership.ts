/** Resolves the declared owner and group of a file or directory to numbers. */
import { Fault } from '../../kernel/fault.js';
import { type Accounts, OWNERS_GROUP, type Ownership, type Principal } from '../../resources/host.js';
import { isUnprivileged, ownersOfSecret, type Takeover } from '../../resources/unix/unix-permissions.js';

/** Returns the declared IDs, or the present ones where none is declared. Throws `unknown_owner` and `unknown_group`. */
export function ownersOf(wanted: Wanted, there: Ownership, accounts: Accounts): Ownership {
  const { uid, gid } = declaredBy(wanted, accounts);
  return { uid: uid ?? there.uid, gid: gid ?? there.gid };
}

/** Like `ownersOf`, for a replaced file; a file with a secret keeps no owner or group that another user chose. */
export function ownersOfReplacement(
  wanted: Wanted & { readonly isSecret?: boolean },
  there: Ownership,
  accounts: Accounts,
): Ownership {
  if (!wanted.isSecret) return ownersOf(wanted, there, accounts);
  const { uid, gid } = ownersOfSecret(there, declaredBy(wanted, accounts), accounts.own);
  return { uid: uid ?? there.uid, gid: gid ?? there.gid };
}

/**
 * Returns the owner and group of something new before those of the module. The owner of a setgid directory has chosen the group of
 * what is made in it: that group is taken from root and the user of this process only.
 */
export const inheritedBy = (made: Ownership, directory: Ownership, own: Ownership): Ownership =>
  isUnprivileged(directory.uid, own) ? { uid: made.uid, gid: own.gid } : { uid: made.uid, gid: made.gid };

/** Describes a change of owners in place, for `keptMode`. */
export const takeoverOf = (
  { group }: Pick<Wanted, 'group'>,
  there: Ownership,
  owners: Ownership,
): Omit<Takeover, 'isReplaced'> & { readonly isReplaced: false } => ({
  isNewOwner: there.uid !== owners.uid,
  isNewGroup: there.gid !== owners.gid,
  isGroupDeclared: group !== null,
  isReplaced: false,
});

interface Wanted {
  readonly owner: Principal;
  readonly group: Principal;
}

/** Returns the declared IDs; null where none is declared. */
function declaredBy(wanted: Wanted, accounts: Accounts): { readonly uid: number | null; readonly gid: number | null } {
  const uid = wanted.owner === null ? null : accounts.uid(wanted.owner);
  const gid = groupOf(wanted, accounts);
  if (uid === undefined) throw new Fault('unknown_owner', `there is no user "${wanted.owner}" on this machine`);
  if (gid === undefined) throw new Fault('unknown_group', `there is no group "${wanted.group}" on this machine`);
  return { uid, gid };
}

const groupOf = ({ owner, group }: Wanted, accounts: Accounts): number | null | undefined => {
  if (group === OWNERS_GROUP) return owner === null ? null : accounts.loginGroup(owner);
  return group === null ? null : accounts.gid(group);
};

export const isSameOwner = (a: Ownership, b: Ownership): boolean => a.uid === b.uid && a.gid === b.gid;
