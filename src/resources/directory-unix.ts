/** `directory-unix`: a directory with its owner, group and mode. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { WITH_CONTENT } from './absence-name.js';
import { type PathFact, READ_BATCH } from './host.js';
import { type BodyProblem, type Decision, defineResource } from './kind.js';
import { findMissingParents, parentsField } from './missing-parents.js';
import { afterRemovals } from './path-room.js';
import { checkPurge, findUndeclared, type PurgeFact, purgeChanges, purgeSteps } from './purge.js';
import {
  checkUnixPath,
  compareMetadata,
  holdersOfUnixPath,
  metadataOfNew,
  unknownPrincipal,
  unsafeTakeover,
} from './unix/unix-metadata.js';
import { aboveUnixPath, UNIX_RULES } from './unix/unix-path.js';
import { MODE_PATTERN, parseMode } from './unix/unix-permissions.js';

const schema = closed({
  path: Type.String({ minLength: 1, description: 'Absolute path, the identity of the resource' }),
  owner: optional(Type.String({ minLength: 1, description: 'User name or numeric id; null: not managed' })),
  group: optional(Type.String({ minLength: 1, description: 'Group name or numeric id; null: not managed' })),
  mode: optional(Type.String({ pattern: MODE_PATTERN, description: 'Quoted octal mode such as "0755"' })),
  parents: parentsField,
  source: optional(
    Type.String({
      minLength: 1,
      description: 'Directory beside the module whose files and directories come into this one',
    }),
  ),
  file_mode: optional(
    Type.String({
      pattern: MODE_PATTERN,
      description:
        'Quoted octal mode of the files from `source`, "0644" by default; programs may also be run by those who may read them',
    }),
  ),
  purge: optional(
    Type.Boolean({
      description: 'true: what no module declares in the directory is deleted, also in directories in it',
    }),
  ),
});

type DirectoryBody = Type.Static<typeof schema>;

/** `purge` is present for a directory that is to be purged. */
type DirectoryHave = PathFact & { readonly purge?: PurgeFact };

const NEW_MODE = '0755';
/** Files in a directory that a setgid directory holds get the group of both. */
const SETGID_MODE = '2755';

export const directoryUnix = defineResource<DirectoryBody, DirectoryHave>({
  kind: 'directory-unix',
  family: 'path',
  platforms: ['linux', 'macos'],
  schema,
  check: (body) => [...checkUnixPath(body), ...checkFileMode(body), ...checkPurge(body)],
  identity: (body) => body.path,
  requires: holdersOfUnixPath,
  above: aboveUnixPath,
  batch: READ_BATCH,
  read(host, wants, purpose, near) {
    const isListed = (want: DirectoryBody) => purpose === 'removal' || want.purge === true;
    const facts = host.observe(wants.map((want) => ({ path: want.path, content: false, entries: isListed(want) })));
    if (near === undefined || purpose === 'removal') return facts;
    return facts.map((fact, at) => {
      const want = wants[at];
      if (fact.type !== 'directory' || want?.purge !== true) return fact;
      return { ...fact, purge: findUndeclared(host, want.path, fact.entries, near) };
    });
  },
  exists: (have) => have.type !== 'absent',

  plan(want, found, context): Decision {
    const have = afterRemovals(want.path, found, context, { rules: UNIX_RULES, own: 'directory' });
    const owner = want.owner ?? null;
    const group = want.group ?? null;
    switch (have.type) {
      case 'unreadable':
        return { action: 'fail', code: have.code, message: have.message };
      case 'file':
        return { action: 'fail', code: 'wrong_type', message: `${want.path} is a file, not a directory` };
      case 'symlink':
        return {
          action: 'fail',
          code: 'wrong_type',
          message: `${want.path} is a symlink to ${have.target}, not a directory`,
        };
      case 'other':
        return { action: 'fail', code: 'wrong_type', message: `${want.path} is a ${have.what}, not a directory` };
      case 'absent': {
        const missing = findMissingParents(want, have, context, UNIX_RULES);
        const refusal = missing.refusal ?? unknownPrincipal(want, context);
        if (refusal) return { ...refusal, action: 'fail' };
        const mode = want.mode ?? (have.setgid ? SETGID_MODE : NEW_MODE);
        const bits = want.mode == null ? null : parseMode(want.mode);
        return {
          action: 'create',
          changes: [...missing.changes, ...metadataOfNew(want, mode)],
          steps: [{ do: 'make-directory', path: want.path, owner, group, mode: bits, ...missing.parents }],
          ...missing.makes,
        };
      }
      case 'directory': {
        const metadata = compareMetadata(want, have, context);
        if ('code' in metadata) return { action: 'fail', ...metadata };
        const { undeclared = [], refusal: unpurged = null } = (want.purge === true ? found.purge : undefined) ?? {};
        if (unpurged !== null) return { action: 'fail', ...unpurged };
        const changes = [...metadata.changes, ...purgeChanges(want.path, undeclared ?? [])];
        const purge = purgeSteps(undeclared ?? []);
        if (changes.length === 0) return { action: 'none' };
        const isDeep = undeclared?.some(({ isDirectory }) => isDirectory) === true;
        const reason = isDeep ? { reason: `${WITH_CONTENT}s directories` } : {};
        if (metadata.changes.length === 0) return { action: 'update', changes, steps: purge, ...reason };
        const refusal = unsafeTakeover(want.path, have, metadata, context);
        if (refusal) return { action: 'fail', ...refusal };
        const mode = want.mode == null ? null : parseMode(want.mode);
        const step = { do: 'set-metadata', path: want.path, expect: 'directory', owner, group, mode } as const;
        return { action: 'update', changes, steps: [step, ...purge], ...reason };
      }
    }
  },

  planRemoval(last, have, context): Decision {
    if (have.type === 'absent') return { action: 'none' };
    if (have.type === 'unreadable') return { action: 'fail', code: have.code, message: have.message };
    if (have.type !== 'directory') return { action: 'release', reason: `${last.path} is no longer a directory` };
    const left = have.entries?.filter((name) => !context.removes('path', `${last.path}/${name}`));
    if (left === undefined || left.length > 0) {
      return { action: 'release', reason: `${last.path} is not empty` };
    }
    return { action: 'remove', changes: [], steps: [{ do: 'remove-directory', path: last.path }] };
  },
});

/** Checks that a mode of files has files. The files themselves are resources of their own on an agent. */
function checkFileMode({ source, file_mode }: DirectoryBody): readonly BodyProblem[] {
  if (file_mode == null || source != null) return [];
  return [
    { path: '/file_mode', message: 'file_mode is the mode of the files from source, the directory beside the module' },
  ];
}
