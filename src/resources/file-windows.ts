/** `file-windows`: a regular file with its content; it inherits the access list of its directory. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import {
  checkContent,
  compareContent,
  contentFields,
  contentOfNew,
  neededContent,
  wantedContent,
} from './file-content.js';
import { type PathFact, READ_BATCH } from './host.js';
import { type Decision, defineResource } from './kind.js';
import { findMissingParents, NO_MISSING_PARENTS, parentsField } from './missing-parents.js';
import { afterRemovals, clearingSteps } from './path-room.js';
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
  ...contentFields,
  parents: parentsField,
});

type FileBody = Type.Static<typeof schema>;

export const fileWindows = defineResource<FileBody, PathFact>({
  kind: 'file-windows',
  family: 'path',
  platforms: ['windows'],
  schema,
  check: (body) => [...checkWindowsPath(body), ...checkContent(body)],
  identity: (body) => windowsIdentity(body.path),
  requires: requiredWindowsParent,
  above: aboveWindowsPath,
  batch: READ_BATCH,
  read: (host, wants) =>
    host.observe(wants.map((want) => ({ path: windowsPath(want.path), content: neededContent(want), entries: false }))),
  exists: (have) => have.type !== 'absent',

  plan(want, found, context): Decision {
    const path = windowsPath(want.path);
    const have = afterRemovals(path, found, context, { rules: WINDOWS_RULES, own: 'file' });
    const wanted = wantedContent(want);
    const write = {
      do: 'write-file',
      path,
      content: wanted ?? '',
      owner: null,
      group: null,
      mode: null,
    } as const;
    switch (have.type) {
      case 'unreadable':
        return { action: 'fail', code: have.code, message: have.message };
      case 'directory':
        return { action: 'fail', code: 'wrong_type', message: `${path} is a directory, not a file` };
      case 'other':
        return { action: 'fail', code: 'wrong_type', message: `${path} is a ${have.what}, not a file` };
      case 'absent':
      case 'symlink': {
        if (have.type === 'symlink' && wanted === null) {
          const remedy = 'declare its content to replace the link with a file, or the path of its target instead';
          const message = `${path} is a symlink to ${have.target}, not a file; ${remedy}`;
          return { action: 'fail', code: 'wrong_type', message };
        }
        const missing =
          have.type === 'absent'
            ? findMissingParents({ ...want, path }, have, context, WINDOWS_RULES)
            : NO_MISSING_PARENTS;
        if (missing.refusal) return missing.refusal;
        const { changes: shown = [], ...text } = contentOfNew(wanted);
        if (have.type === 'absent') {
          const steps = [...clearingSteps(context), { ...write, ...missing.parents }];
          return { action: 'create', changes: [...missing.changes, ...shown], ...text, steps, ...missing.makes };
        }
        const replaced = { field: 'type', before: `symlink to ${have.target}`, after: 'file' };
        return { action: 'update', changes: [replaced, ...shown], ...text, steps: [write] };
      }
      case 'file': {
        const content = compareContent(wanted, have);
        return content === null ? { action: 'none' } : { action: 'update', ...content, steps: [write] };
      }
    }
  },

  planRemoval(last, have): Decision {
    const path = windowsPath(last.path);
    if (have.type === 'absent') return { action: 'none' };
    if (have.type === 'unreadable') return { action: 'fail', code: have.code, message: have.message };
    if (have.type !== 'file') return { action: 'release', reason: `${path} is no longer a file` };
    return { action: 'remove', changes: [], steps: [{ do: 'remove-file', path }] };
  },
});
