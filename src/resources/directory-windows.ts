/** `directory-windows`: a directory, which inherits the access list of its parent. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import { type PathFact, READ_BATCH } from './host.js';
import { type Decision, defineResource } from './kind.js';
import { findMissingParents, parentsField } from './missing-parents.js';
import { afterRemovals } from './path-room.js';
import {
  aboveWindowsPath,
  checkWindowsPath,
  requiredWindowsParent,
  WINDOWS_RULES,
  windowsIdentity,
  windowsPath,
} from './windows/windows-path.js';

const schema = closed({
  path: Type.String({ minLength: 1, description: 'Absolute path that begins with a drive letter; the identity' }),
  parents: parentsField,
});

type DirectoryBody = Type.Static<typeof schema>;

export const directoryWindows = defineResource<DirectoryBody, PathFact>({
  kind: 'directory-windows',
  family: 'path',
  platforms: ['windows'],
  schema,
  check: checkWindowsPath,
  identity: (body) => windowsIdentity(body.path),
  requires: requiredWindowsParent,
  above: aboveWindowsPath,
  batch: READ_BATCH,
  read: (host, wants, purpose) =>
    host.observe(
      wants.map((want) => ({ path: windowsPath(want.path), content: false, entries: purpose === 'removal' })),
    ),
  exists: (have) => have.type !== 'absent',

  plan(want, found, context): Decision {
    const path = windowsPath(want.path);
    const have = afterRemovals(path, found, context, { rules: WINDOWS_RULES, own: 'directory' });
    const refuse = (what: string): Decision => ({
      action: 'fail',
      code: 'wrong_type',
      message: `${path} is a ${what}, not a directory`,
    });
    switch (have.type) {
      case 'unreadable':
        return { action: 'fail', code: have.code, message: have.message };
      case 'file':
        return refuse('file');
      case 'symlink':
        return refuse(`symlink or junction to ${have.target}`);
      case 'other':
        return refuse(have.what);
      case 'absent': {
        const missing = findMissingParents({ ...want, path }, have, context, WINDOWS_RULES);
        if (missing.refusal) return missing.refusal;
        const make = {
          do: 'make-directory',
          path,
          owner: null,
          group: null,
          mode: null,
          ...missing.parents,
        } as const;
        return { action: 'create', changes: missing.changes, steps: [make], ...missing.makes };
      }
      case 'directory':
        return { action: 'none' };
    }
  },

  planRemoval(last, have, context): Decision {
    const path = windowsPath(last.path);
    if (have.type === 'absent') return { action: 'none' };
    if (have.type === 'unreadable') return { action: 'fail', code: have.code, message: have.message };
    if (have.type !== 'directory') return { action: 'release', reason: `${path} is no longer a directory` };
    const left = have.entries?.filter((name) => !context.removes('path', windowsIdentity(`${path}\\${name}`)));
    if (left === undefined || left.length > 0) return { action: 'release', reason: `${path} is not empty` };
    return { action: 'remove', changes: [], steps: [{ do: 'remove-directory', path }] };
  },
});
