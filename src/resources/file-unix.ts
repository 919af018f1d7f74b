/** `file-unix`: a regular file with its content, owner, group and mode. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { commandFailure } from './command.js';
import {
  CHECKED,
  checkedWrite,
  checkFailure,
  checkValidate,
  isInPlace,
  NOT_IN_PLACE,
  uncheckedYet,
  validateField,
} from './file-check.js';
import {
  checkContent,
  compareContent,
  contentFields,
  contentOfNew,
  neededContent,
  wantedContent,
} from './file-content.js';
import { type Metadata, type PathFact, READ_BATCH, type Step } from './host.js';
import { type BodyProblem, type Decision, defineResource, type PlanContext } from './kind.js';
import { findMissingParents, NO_MISSING_PARENTS, parentsField } from './missing-parents.js';
import { afterRemovals, clearingSteps } from './path-room.js';
import { unitAt } from './services/systemd-unit-file.js';
import {
  checkUnixPath,
  compareMetadata,
  holdersOfUnixPath,
  metadataOfNew,
  refusalOfVirtual,
  type UnixMetadataBody,
  unknownPrincipal,
  unsafeTakeover,
} from './unix/unix-metadata.js';
import { aboveUnixPath, UNIX_RULES } from './unix/unix-path.js';
import { MODE_PATTERN, ownersOfSecret, parseMode } from './unix/unix-permissions.js';

const schema = closed({
  path: Type.String({ minLength: 1, description: 'Absolute path, the identity of the resource' }),
  ...contentFields,
  owner: optional(Type.String({ minLength: 1, description: 'User name or numeric id; null: not managed' })),
  group: optional(Type.String({ minLength: 1, description: 'Group name or numeric id; null: not managed' })),
  mode: optional(Type.String({ pattern: MODE_PATTERN, description: 'Quoted octal mode such as "0644"' })),
  parents: parentsField,
  validate: validateField,
  only_if_missing: optional(
    Type.Boolean({
      description: 'true: the content is written only where the file is missing, and left alone afterwards',
    }),
  ),
});

type FileBody = Type.Static<typeof schema>;

const NEW_MODE = '0644';
const PRIVATE_MODE = '0600';

export const fileUnix = defineResource<FileBody, PathFact>({
  kind: 'file-unix',
  family: 'path',
  platforms: ['linux', 'macos'],
  schema,
  check: (body) => [...checkUnixPath(body), ...checkContent(body), ...checkDependents(body)],
  identity: (body) => body.path,
  requires: holdersOfUnixPath,
  above: aboveUnixPath,
  together: ({ validate }) => (validate != null && isInPlace(validate) ? validate : null),
  batch: READ_BATCH,
  read(host, wants, purpose) {
    const facts = host.observe(
      wants.map((want) => {
        const isLeft = want.only_if_missing === true && purpose !== 'removal';
        return { path: want.path, content: !isLeft && neededContent(want), entries: false };
      }),
    );
    if (host.platform === 'linux' || purpose === 'removal') return facts;
    return facts.map((fact, at) => (isInPlace(wants[at]?.validate) ? NOT_IN_PLACE : fact));
  },
  exists: (have) => have.type !== 'absent',

  plan(want, found, context): Decision {
    const have = afterRemovals(want.path, found, context, { rules: UNIX_RULES, own: 'file' });
    const isLeft = want.only_if_missing === true && have.type !== 'absent';
    const isSecret = context.sensitive && !isLeft;
    // A file with a secret is private unless the module says otherwise.
    const mode = want.mode ?? (isSecret ? PRIVATE_MODE : null);
    const owner = want.owner ?? null;
    const group = want.group ?? null;
    const wanted = isLeft ? null : wantedContent(want);
    const write = {
      do: 'write-file',
      path: want.path,
      content: wanted ?? '',
      owner,
      group,
      mode: mode === null ? null : parseMode(mode),
      ...(isSecret ? { isSecret: true } : {}),
      ...(want.only_if_missing === true ? { over: null } : {}),
    } as const;
    const written = (there: Metadata | null, parents: { readonly parents?: true } = {}) =>
      checkedWrite({
        validate: want.validate,
        write: { ...write, ...parents },
        before: have.type === 'absent' ? clearingSteps(context) : [],
        copy: {
          owner: owner ?? (there === null || isSecret ? null : String(there.uid)),
          group: group ?? (there === null || isSecret ? null : String(there.gid)),
          mode: write.mode ?? there?.mode ?? parseMode(NEW_MODE),
        },
      });

    switch (have.type) {
      case 'unreadable':
        return { action: 'fail', code: have.code, message: have.message };
      case 'directory':
        return { action: 'fail', code: 'wrong_type', message: `${want.path} is a directory, not a file` };
      case 'other':
        return { action: 'fail', code: 'wrong_type', message: `${want.path} is a ${have.what}, not a file` };
      case 'absent':
      case 'symlink': {
        if (have.type === 'symlink' && wanted === null) {
          const remedy = isLeft
            ? 'declare the path of its target instead, or leave out only_if_missing to replace the link with a file'
            : 'declare its content to replace the link with a file, or the path of its target instead';
          const message = `${want.path} is a symlink to ${have.target}, not a file; ${remedy}`;
          return { action: 'fail', code: 'wrong_type', message };
        }
        if (have.type === 'absent' && have.isVirtual) return { action: 'fail', ...refusalOfVirtual(want.path) };
        const missing =
          have.type === 'absent' ? findMissingParents(want, have, context, UNIX_RULES) : NO_MISSING_PARENTS;
        const refusal = missing.refusal ?? unknownPrincipal(want, context);
        if (refusal) return { ...refusal, action: 'fail' };
        const fields = metadataOfNew(want, mode ?? NEW_MODE);
        const { changes: shown = [], ...text } = contentOfNew(wanted);
        if (have.type === 'absent') {
          const changes = [...missing.changes, ...shown, ...fields];
          return { action: 'create', changes, ...text, ...written(null, missing.parents), ...missing.makes };
        }
        const masked = have.target === '/dev/null' ? unitAt(want.path) : null;
        if (masked !== null) {
          const message = `${want.path} masks ${masked}; unmask it with: systemctl unmask ${masked}`;
          return { action: 'fail', code: 'unit_masked', message };
        }
        const replaced = { field: 'type', before: `symlink to ${have.target}`, after: 'file' };
        return { action: 'update', changes: [replaced, ...shown, ...fields], ...text, ...written(null) };
      }
      case 'file': {
        const content = compareContent(wanted, have);
        const owned = isSecret ? ownedSecret(want, have, context) : want;
        const metadata = compareMetadata({ ...owned, mode }, have, context, { isReplaced: content !== null });
        if ('code' in metadata) return { action: 'fail', ...metadata };
        const changes = [...(content?.changes ?? []), ...metadata.changes];
        if (changes.length === 0) return wanted === null ? { action: 'none' } : uncheckedYet(want, context);
        const isTaken = owned.owner !== want.owner || owned.group !== want.group;
        const more = {
          ...(content?.text ? { text: content.text } : {}),
          ...(isTaken
            ? { reason: `it holds a secret, and user ${context.accounts.userName(have.uid)} made the file` }
            : {}),
        };
        const refusal = unsafeTakeover(want.path, have, metadata, context);
        // A new file drops access lists and the descriptors of users who have the old one open.
        const isSuspect = metadata.isGiven || have.exposedTo !== undefined || refusal !== null;
        const isWritten = content !== null || (wanted !== null && isSuspect);
        if (isWritten && have.isVirtual) return { action: 'fail', ...refusalOfVirtual(want.path) };
        if (isWritten) return { action: 'update', changes, ...more, ...written(have) };
        if (refusal) return { action: 'fail', ...refusal };
        const { mode: bits } = write;
        return {
          action: 'update',
          changes,
          steps: [{ do: 'set-metadata', path: want.path, expect: 'file', owner, group, mode: bits }],
        };
      }
    }
  },

  planRemoval(last, have, context): Decision {
    if (have.type === 'absent') return { action: 'none' };
    if (have.type === 'unreadable') return { action: 'fail', code: have.code, message: have.message };
    if (have.type !== 'file') return { action: 'release', reason: `${last.path} is no longer a file` };
    if (last.only_if_missing === true && !isAsWritten(last, have, context)) {
      return { action: 'release', reason: `${last.path} no longer has the content that orch wrote, or holds a secret` };
    }
    const reload = unitAt(last.path) === null ? [] : [FORGET_UNIT];
    return { action: 'remove', changes: [], steps: [{ do: 'remove-file', path: last.path }, ...reload] };
  },

  memo: ({ validate }) => (isInPlace(validate) ? CHECKED : null),
  explain: (_host, _body, step, result) => checkFailure(step, result) ?? commandFailure(step.command, result),
});

/** Checks the fields that depend on a content. */
function checkDependents({ content, template, source, url, ...body }: FileBody): readonly BodyProblem[] {
  const hasContent = content != null || template != null || source != null || url != null;
  const message =
    'only_if_missing needs content, template, source or url; a file without them keeps its content anyway';
  return [
    ...checkValidate(body.validate, hasContent),
    ...(body.only_if_missing === true && !hasContent ? [{ path: '/only_if_missing', message }] : []),
  ];
}

/** True for the content of the module, as earlier changes of the plan leave the file. A masked secret equals no content. */
function isAsWritten(last: FileBody, have: Extract<PathFact, { type: 'file' }>, context: PlanContext): boolean {
  const text = context.written(last.path);
  const content = text === null ? have.content : ({ kind: 'text', text } as const);
  return compareContent(wantedContent(last), { ...have, content }) === null;
}

/** Has systemd forget the unit of a file that is gone, where systemd runs. */
export const FORGET_UNIT: Step = {
  do: 'run',
  command: { argv: ['sh', '-c', 'test ! -d /run/systemd/system || exec systemctl daemon-reload'] },
};

/** Returns the body with the owner and group that a file with a secret gets. */
function ownedSecret(want: FileBody, have: Metadata, { accounts }: PlanContext): UnixMetadataBody {
  const idOf = (id: number | undefined) => id ?? -1;
  const declared = {
    uid: want.owner == null ? null : idOf(accounts.uid(want.owner)),
    gid: want.group == null ? null : idOf(accounts.gid(want.group)),
  };
  const { uid, gid } = ownersOfSecret(have, declared, accounts.own);
  return {
    ...want,
    ...(uid === declared.uid ? {} : { owner: accounts.userName(uid ?? accounts.own.uid) }),
    ...(gid === declared.gid ? {} : { group: accounts.groupName(gid ?? accounts.own.gid) }),
  };
}
