/** `symlink-unix`: a symbolic link with its target, owner and group. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { FORGET_UNIT } from './file-unix.js';
import { type PathFact, READ_BATCH } from './host.js';
import { type BodyProblem, type Decision, defineResource, type FieldChange, type PlanContext } from './kind.js';
import { findMissingParents, parentsField } from './missing-parents.js';
import { afterRemovals, clearingSteps } from './path-room.js';
import { unitAt } from './services/systemd-unit-file.js';
import { checkUnixPath, holdersOfUnixPath, refusalOfVirtual, unknownPrincipal } from './unix/unix-metadata.js';
import { aboveUnixPath, UNIX_RULES, utf8Length } from './unix/unix-path.js';

/** Maximum bytes of a target, as systems count them. */
const MAX_TARGET = 4095;

const schema = closed({
  path: Type.String({ minLength: 1, description: 'Absolute path, the identity of the resource' }),
  target: Type.String({ minLength: 1, description: 'Absolute or relative path that the link holds' }),
  owner: optional(Type.String({ minLength: 1, description: 'User name or numeric id; null: not managed' })),
  group: optional(Type.String({ minLength: 1, description: 'Group name or numeric id; null: not managed' })),
  replace: optional(Type.Boolean({ description: 'true: the link takes the place of a file' })),
  parents: parentsField,
});

type SymlinkBody = Type.Static<typeof schema>;

export const symlinkUnix = defineResource<SymlinkBody, PathFact>({
  kind: 'symlink-unix',
  family: 'path',
  platforms: ['linux', 'macos'],
  schema,
  check: (body) => [...checkUnixPath(body), ...checkTarget(body)],
  identity: (body) => body.path,
  requires: holdersOfUnixPath,
  above: aboveUnixPath,
  batch: READ_BATCH,
  read: (host, wants) => host.observe(wants.map(({ path }) => ({ path, content: false, entries: false }))),
  exists: (have) => have.type !== 'absent',

  plan(want, found, context): Decision {
    const have = afterRemovals(want.path, found, context, { rules: UNIX_RULES, own: 'symlink' });
    const { path, target } = want;
    const step = {
      do: 'make-link',
      path,
      target,
      owner: want.owner ?? null,
      group: want.group ?? null,
      replace: want.replace === true,
    } as const;
    switch (have.type) {
      case 'unreadable':
        return { action: 'fail', code: have.code, message: have.message };
      case 'directory': {
        const message = `${path} is a directory, not a link, and a link never takes its place; remove it by hand, or declare another path`;
        return { action: 'fail', code: 'wrong_type', message };
      }
      case 'other':
        return { action: 'fail', code: 'wrong_type', message: `${path} is a ${have.what}, not a link` };
      case 'absent': {
        if (have.isVirtual) return { action: 'fail', ...refusalOfVirtual(path) };
        const missing = findMissingParents(want, have, context, UNIX_RULES);
        const refusal = missing.refusal ?? unknownPrincipal(want, context);
        if (refusal) return { ...refusal, action: 'fail' };
        const changes = [...missing.changes, { field: 'target', before: null, after: target }, ...ownersOfNew(want)];
        const steps = [...clearingSteps(context), { ...step, ...missing.parents }];
        return { action: 'create', changes, steps, ...missing.makes };
      }
      case 'file': {
        if (want.replace !== true) {
          const message = `${path} is a file, not a link; "replace: true" puts the link in its place`;
          return { action: 'fail', code: 'wrong_type', message };
        }
        if (have.isVirtual) return { action: 'fail', ...refusalOfVirtual(path) };
        const refusal = unknownPrincipal(want, context);
        if (refusal) return { ...refusal, action: 'fail' };
        const replaced = { field: 'type', before: 'file', after: `symlink to ${target}` };
        return { action: 'update', changes: [replaced, ...ownersOfNew(want)], steps: [step] };
      }
      case 'symlink': {
        const refusal = unknownPrincipal(want, context);
        if (refusal) return { ...refusal, action: 'fail' };
        const moved = have.target === target ? [] : [{ field: 'target', before: have.target, after: target }];
        const changes = [...moved, ...changedOwners(want, have, context)];
        return changes.length === 0 ? { action: 'none' } : { action: 'update', changes, steps: [step] };
      }
    }
  },

  planRemoval(last, have): Decision {
    if (have.type === 'absent') return { action: 'none' };
    if (have.type === 'unreadable') return { action: 'fail', code: have.code, message: have.message };
    if (have.type !== 'symlink') return { action: 'release', reason: `${last.path} is no longer a link` };
    const forget = unitAt(last.path) === null ? [] : [FORGET_UNIT];
    return {
      action: 'remove',
      changes: [],
      steps: [{ do: 'remove-file', path: last.path, expect: 'symlink' }, ...forget],
    };
  },
});

function checkTarget({ path, target }: SymlinkBody): readonly BodyProblem[] {
  const problem = (message: string) => [{ path: '/target', message }];
  if (target.includes('\0')) return problem('target must not contain a NUL character');
  if (!target.isWellFormed()) return problem('target must be valid Unicode text');
  if (utf8Length(target) > MAX_TARGET) return problem(`target is longer than ${MAX_TARGET} bytes`);
  if (target === path) return problem('target is the path of the link itself');
  const unit = target === '/dev/null' ? unitAt(path) : null;
  if (unit === null) return [];
  return problem(`a link to /dev/null masks ${unit}; declare service-systemd with "masked: true" instead`);
}

/** Returns the declared owner and group of a new link as changes. */
const ownersOfNew = ({ owner, group }: SymlinkBody): readonly FieldChange[] => [
  ...(owner == null ? [] : [{ field: 'owner', before: null, after: owner }]),
  ...(group == null ? [] : [{ field: 'group', before: null, after: group }]),
];

function changedOwners(
  { owner, group }: SymlinkBody,
  { owner: there }: Extract<PathFact, { type: 'symlink' }>,
  { accounts }: PlanContext,
): readonly FieldChange[] {
  if (there === undefined) return [];
  const isOwner = owner == null || accounts.uid(owner) === there.uid;
  const isGroup = group == null || accounts.gid(group) === there.gid;
  return [
    ...(isOwner ? [] : [{ field: 'owner', before: accounts.userName(there.uid), after: owner }]),
    ...(isGroup ? [] : [{ field: 'group', before: accounts.groupName(there.gid), after: group }]),
  ];
}
