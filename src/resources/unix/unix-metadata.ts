/** Owner, group and mode of files and directories: what differs, and whether the names exist. */
import type { FaultCode } from '../../kernel/fault-code.js';
import type { Metadata } from '../host.js';
import type { BodyProblem, Family, FieldChange, PlanContext } from '../kind.js';
import { formatMode, parseMode } from './unix-mode.js';
import { parentOf, problemOfUnixPath } from './unix-path.js';

/** The fields that files and directories share; null or absent is not managed. */
export interface UnixMetadataBody {
  readonly path: string;
  readonly owner?: string | null;
  readonly group?: string | null;
  readonly mode?: string | null;
}

export type MetadataComparison =
  | { readonly changes: readonly FieldChange[] }
  | { readonly code: FaultCode; readonly message: string };

/** An owner or group that neither exists nor can come with something earlier, as a refusal; null when all is well. */
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

/** Compares the managed ones of owner, group and mode; a `mode` given here overrides the body's. */
export function compareMetadata(
  want: UnixMetadataBody,
  have: Metadata,
  context: PlanContext,
  mode: string | null = want.mode ?? null,
): MetadataComparison {
  const refusal = unknownPrincipal(want, context);
  if (refusal) return refusal;
  const changes: FieldChange[] = [];
  const { accounts } = context;
  if (want.owner != null && accounts.uid(want.owner) !== have.uid) {
    changes.push({ field: 'owner', before: accounts.userName(have.uid), after: want.owner });
  }
  if (want.group != null && accounts.gid(want.group) !== have.gid) {
    changes.push({ field: 'group', before: accounts.groupName(have.gid), after: want.group });
  }
  if (mode != null && parseMode(mode) !== have.mode) {
    changes.push({ field: 'mode', before: formatMode(have.mode), after: formatMode(parseMode(mode)) });
  }
  return { changes };
}

/** What a new file or directory gets, as changes from nothing. */
export function metadataOfNew(want: UnixMetadataBody, mode: string): readonly FieldChange[] {
  const changes: FieldChange[] = [];
  if (want.owner != null) changes.push({ field: 'owner', before: null, after: want.owner });
  if (want.group != null) changes.push({ field: 'group', before: null, after: want.group });
  changes.push({ field: 'mode', before: null, after: formatMode(parseMode(mode)) });
  return changes;
}

/** Rules that files and directories share beyond their schemas. */
export function checkUnixPath(body: UnixMetadataBody): readonly BodyProblem[] {
  const problem = problemOfUnixPath(body.path);
  return problem === null ? [] : [{ path: '/path', message: `path ${problem}` }];
}

/** What has to be there first when it is declared too: the directory that the path lies in, its owner and its group. */
export const holdersOfUnixPath = ({ path, owner, group }: UnixMetadataBody): readonly Holder[] => [
  { family: 'path', identity: parentOf(path) },
  ...(isName(owner) ? [{ family: 'user', identity: owner } as const] : []),
  ...(isName(group) ? [{ family: 'group', identity: group } as const] : []),
];

interface Holder {
  readonly family: Family;
  readonly identity: string;
}

/** Numbers need nobody to have them. */
const isName = (principal: string | null | undefined): principal is string =>
  principal != null && !/^\d+$/.test(principal);
