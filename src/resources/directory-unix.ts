/** `directory-unix`: a directory with its owner, group and mode. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { type PathFact, READ_BATCH } from './host.js';
import { type BodyProblem, type Decision, defineResource } from './kind.js';
import { findMissingParents, parentsField } from './missing-parents.js';
import { afterRemovals } from './path-room.js';
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
});

type DirectoryBody = Type.Static<typeof schema>;

const NEW_MODE = '0755';
/** Files in a directory that a setgid directory holds get the group of both. */
const SETGID_MODE = '2755';

export const directoryUnix = defineResource<DirectoryBody, PathFact>({
  kind: 'directory-unix',
  family: 'path',
  platforms: ['linux', 'macos'],
  schema,
  check: (body) => [...checkUnixPath(body), ...checkFileMode(body)],
  identity: (body) => body.path,
  requires: holdersOfUnixPath,
  above: aboveUnixPath,
  batch: READ_BATCH,
  read: (host, wants, purpose) =>
    host.observe(wants.map((want) => ({ path: want.path, content: false, entries: purpose === 'removal' }))),
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
        if (metadata.changes.length === 0) return { action: 'none' };
        const refusal = unsafeTakeover(want.path, have, metadata, context);
        if (refusal) return { action: 'fail', ...refusal };
        const mode = want.mode == null ? null : parseMode(want.mode);
        return {
          action: 'update',
          changes: metadata.changes,
          steps: [{ do: 'set-metadata', path: want.path, expect: 'directory', owner, group, mode }],
        };
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
