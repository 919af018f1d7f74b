/** Turns errors of the file system into fault codes and sentences. */

import { Fault, type FaultCode, messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { FileStep } from '../../resources/host.js';

/** Why something cannot be done at a path. */
interface Refusal {
  readonly code: FaultCode;
  readonly message: string;
}

const REASONS: Readonly<Record<string, readonly [FaultCode, string]>> = {
  EACCES: ['permission_denied', 'this user may not do that'],
  EBUSY: ['busy', 'it is in use or a mount point'],
  EDQUOT: ['disk_full', 'the disk quota is used up'],
  EEXIST: ['apply_failed', 'the path exists already'],
  EISDIR: ['wrong_type', 'it is a directory'],
  ELOOP: ['unsafe_path', 'it is a symbolic link'],
  ENAMETOOLONG: ['unsafe_path', 'the name is too long for this file system'],
  ENOENT: ['parent_missing', 'its directory does not exist'],
  ENOSPC: ['disk_full', 'the disk is full'],
  ENOTDIR: ['parent_missing', 'its directory is not a directory'],
  ENOTEMPTY: ['apply_failed', 'it is not empty'],
  EROFS: ['read_only', 'the file system is read-only'],
  ETXTBSY: ['busy', 'it is being executed'],
};

/**
 * Converts a thrown value into a refusal.
 * @param doing the attempt, such as `cannot write /etc/motd`
 * @param fallback code for errors that have none of their own
 */
export function refusalOf(error: unknown, doing: string, fallback: FaultCode = 'apply_failed'): Refusal {
  if (error instanceof Fault) return { code: error.code, message: error.message };
  const code = systemCodeOf(error);
  const [fault, reason] = known(code, fallback, messageOf(error));
  return { code: fault, message: `${doing}: ${reason}${code === undefined ? '' : ` (${code})`}` };
}

function known(code: string | undefined, fallback: FaultCode, message: string): readonly [FaultCode, string] {
  if (code === 'EPERM') return notPermitted();
  return REASONS[code ?? ''] ?? [fallback, message];
}

/** Explains EPERM: root gets it for files that `chattr` protects, other users for files of other owners. */
function notPermitted(): readonly [FaultCode, string] {
  return process.geteuid?.() === 0
    ? [
        'immutable',
        'it or its directory is immutable or append-only (see lsattr), or this process lacks the capability',
      ]
    : ['permission_denied', 'only its owner or root may do that'];
}

const DOING: Readonly<Record<FileStep['do'], string>> = {
  'write-file': 'write',
  'make-directory': 'make',
  'make-link': 'make the link',
  'set-metadata': 'set owner or mode of',
  'remove-file': 'remove',
  'remove-directory': 'remove',
  'remove-tree': 'remove',
  unpack: 'unpack an archive into',
  'remove-unpacked': 'remove what was unpacked into',
};

/** Returns the refusal for an error that a step ended with. */
export const refusalOfStep = (error: unknown, step: FileStep): Refusal =>
  refusalOf(error, `cannot ${DOING[step.do]} ${step.path}`);

/** The result of a walk that does not reach a directory. */
export type WalkFailure =
  | { readonly kind: 'missing'; readonly what: 'absent' | 'not-directory' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** Returns the place if the walk has reached a directory, else throws the Fault that says why not. */
export function reached<P extends { readonly kind: 'directory' }>(place: P | WalkFailure, path: string): P {
  if (place.kind === 'refused') throw new Fault(place.refusal.code, place.refusal.message);
  if (place.kind === 'missing') {
    const why = place.what === 'absent' ? 'does not exist' : 'is not a directory';
    throw new Fault('parent_missing', `the directory ${path} ${why}`);
  }
  return place;
}
