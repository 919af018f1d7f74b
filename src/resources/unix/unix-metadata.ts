/** Owner, group and mode of files and directories: differences, and unknown names. */
import type { FaultCode } from '../../kernel/fault.js';
import type { Exposure, Metadata } from '../host.js';
import type { BodyProblem, Family, FieldChange, PlanContext } from '../kind.js';
import { parentOf, parentOfUnixPath, problemOfUnixPath } from './unix-path.js';
import { formatMode, keptMode, parseMode, refusalOfTakeover } from './unix-permissions.js';

/** Common fields of files and directories; null or absent means not managed. */
export interface UnixMetadataBody {
  readonly path: string;
  readonly owner?: string | null;
  readonly group?: string | null;
  readonly mode?: string | null;
}

type MetadataComparison =
  | {
      readonly changes: readonly FieldChange[];
      /** True when the owner or the group changes. */
      readonly isGiven: boolean;
      /** Future owner, group and mode; an ID is -1 while its user or group does not exist. */
      readonly after: Metadata;
    }
  | { readonly code: FaultCode; readonly message: string };

/** Returns a refusal for an owner or group that neither exists nor can come with an earlier resource; else null. */
export function unknownPrincipal(
  want: UnixMetadataBody,
  context: PlanContext,
): { readonly code: FaultCode; readonly message: string } | null {
  const { owner, group } = want;
  if (context.mayAppear) return null;
  if (owner != null && context.accounts.uid(owner) === undefined && !context.declares('user', owner)) {
    return { code: 'unknown_owner', message: `there is no user "${owner}" on this machine` };
  }
  if (group != null && context.accounts.gid(group) === undefined && !context.declares('group', group)) {
    return { code: 'unknown_group', message: `there is no group "${group}" on this machine` };
  }
  return null;
}

/**
 * Compares the managed fields. An unmanaged mode may lose bits because of another owner, group or content (`keptMode`).
 */
export function compareMetadata(
  want: UnixMetadataBody,
  have: Metadata & Exposure,
  context: PlanContext,
  { isReplaced = false }: { readonly isReplaced?: boolean } = {},
): MetadataComparison {
  const refusal = unknownPrincipal(want, context);
  if (refusal) return refusal;
  const changes: FieldChange[] = [];
  const { accounts } = context;
  const uid = want.owner == null ? have.uid : (accounts.uid(want.owner) ?? -1);
  const gid = want.group == null ? have.gid : (accounts.gid(want.group) ?? -1);
  const isNewOwner = uid !== have.uid;
  const isNewGroup = gid !== have.gid;
  if (isNewOwner) changes.push({ field: 'owner', before: accounts.userName(have.uid), after: want.owner ?? null });
  if (isNewGroup) changes.push({ field: 'group', before: accounts.groupName(have.gid), after: want.group ?? null });
  const isGroupDeclared = want.group != null;
  const mode =
    want.mode == null
      ? keptMode(have.mode, { isNewOwner, isNewGroup, isGroupDeclared, isReplaced })
      : parseMode(want.mode);
  if (mode !== have.mode) changes.push({ field: 'mode', before: formatMode(have.mode), after: formatMode(mode) });
  if (have.hasForeignList) changes.push({ field: 'access_list', before: 'chosen by another user', after: null });
  return { changes, isGiven: isNewOwner || isNewGroup, after: { uid, gid, mode } };
}

/** Returns a refusal if a difference must not be changed in place, else null. */
export function unsafeTakeover(
  path: string,
  have: Metadata & Exposure & { readonly type: 'file' | 'directory' },
  { after }: { readonly after: Metadata },
  context: PlanContext,
): { readonly code: FaultCode; readonly message: string } | null {
  const message = refusalOfTakeover(have, { path, expect: have.type, after }, context.accounts.own);
  return message === null ? null : { code: 'unsafe_path', message };
}

/** Returns why nothing can be made or replaced at a path of the kernel's file systems. */
export const refusalOfVirtual = (path: string): { readonly code: FaultCode; readonly message: string } => ({
  code: 'wrong_type',
  message: `files cannot be made in ${parentOf(path)}, where the kernel keeps its own; change its values with a script`,
});

/** Returns owner, group and mode of a new file or directory as changes. */
export function metadataOfNew(want: UnixMetadataBody, mode: string): readonly FieldChange[] {
  const changes: FieldChange[] = [];
  if (want.owner != null) changes.push({ field: 'owner', before: null, after: want.owner });
  if (want.group != null) changes.push({ field: 'group', before: null, after: want.group });
  changes.push({ field: 'mode', before: null, after: formatMode(parseMode(mode)) });
  return changes;
}

/** Checks the path of a file or directory. */
export function checkUnixPath(body: UnixMetadataBody): readonly BodyProblem[] {
  const problem = problemOfUnixPath(body.path);
  return problem === null ? [] : [{ path: '/path', message: `path ${problem}` }];
}

/** Returns the resources that, if declared, must come first: parent directory, owner and group. */
export const holdersOfUnixPath = ({ path, owner, group }: UnixMetadataBody): readonly Holder[] => [
  ...parentOfUnixPath(path),
  ...(isName(owner) ? [{ family: 'user', identity: owner } as const] : []),
  ...(isName(group) ? [{ family: 'group', identity: group } as const] : []),
];

interface Holder {
  readonly family: Family;
  readonly identity: string;
}

/** True for a name; numeric IDs need no account. */
const isName = (principal: string | null | undefined): principal is string =>
  principal != null && !/^\d+$/.test(principal);
