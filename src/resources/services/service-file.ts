/** Compares the file that defines a service, which belongs to root, with the present one. */

import type { CommandRefusal } from '../command.js';
import { compareContent } from '../file-content.js';
import type { FileStep, PathFact } from '../host.js';
import type { FieldChange, PlanContext } from '../kind.js';
import { compareMetadata } from '../unix/unix-metadata.js';
import { parseMode } from '../unix/unix-permissions.js';

interface ServiceFile {
  /** Field name of the change. */
  readonly field: string;
  readonly path: string;
  readonly text: string;
  readonly group: string;
}

export interface ServiceFileDifference {
  readonly changes: readonly FieldChange[];
  readonly text?: { readonly before: string | null; readonly after: string };
  readonly steps: readonly FileStep[];
  /** True when the file is rewritten. */
  readonly isReplaced: boolean;
}

export const NO_DIFFERENCE: ServiceFileDifference = { changes: [], steps: [], isReplaced: false };

/** Returns why no file can be written at the path, or null. */
export function refusalOfPlace(path: string, file: PathFact): CommandRefusal | null {
  switch (file.type) {
    case 'unreadable':
      return { code: file.code, message: file.message };
    case 'directory':
      return { code: 'wrong_type', message: `${path} is a directory, not a file` };
    case 'other':
      return { code: 'wrong_type', message: `${path} is a ${file.what}, not a file` };
    case 'absent':
    case 'file':
    case 'symlink':
      return null;
  }
}

/** Compares the file at a writable path. A file with a secret is readable only for root. */
export function compareServiceFile(
  { field, path, text, group }: ServiceFile,
  file: PathFact,
  context: PlanContext,
): ServiceFileDifference {
  const metadata = { path, owner: 'root', group, mode: context.sensitive ? '0600' : '0644' };
  const mode = parseMode(metadata.mode);
  const secret = context.sensitive ? { isSecret: true } : {};
  const write: FileStep = { do: 'write-file', path, content: text, owner: 'root', group, mode, ...secret };
  if (file.type !== 'file') {
    const before = file.type === 'symlink' ? `symlink to ${file.target}` : null;
    const changes = [{ field, before, after: path }];
    return { changes, text: { before: null, after: text }, steps: [write], isReplaced: true };
  }
  const content = compareContent(text, file);
  const compared = compareMetadata(metadata, file, context);
  const others = 'changes' in compared ? compared.changes : [];
  if (content) {
    const changes = [...content.changes.map((change) => ({ ...change, field })), ...others];
    return { changes, text: content.text, steps: [write], isReplaced: true };
  }
  if (others.length === 0) return NO_DIFFERENCE;
  // A new file drops access lists and the descriptors of users who have the old one open.
  const isRewritten = file.exposedTo !== undefined;
  const set: FileStep = { do: 'set-metadata', path, expect: 'file', owner: 'root', group, mode };
  return { changes: others, steps: [isRewritten ? write : set], isReplaced: isRewritten };
}
