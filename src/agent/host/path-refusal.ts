/** What the system refuses, as fault codes and sentences. */

import { Fault, type FaultCode, messageOf, systemCodeOf } from '../../kernel/fault.js';

/** Why something cannot be done at a path. */
export interface Refusal {
  readonly code: FaultCode;
  readonly message: string;
}

const REASONS: Readonly<Record<string, readonly [FaultCode, string]>> = {
  EACCES: ['permission_denied', 'this user may not do that'],
  EBUSY: ['busy', 'it is in use or a mount point'],
  EDQUOT: ['disk_full', 'the disk quota is used up'],
  EEXIST: ['apply_failed', 'something is there already'],
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
 * The refusal that stands for something thrown.
 * @param doing what was tried, such as `cannot write /etc/motd`
 * @param fallback the code for what has no code of its own
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

/** To root, the system says this of what `chattr` protects; to others, of what is not theirs. */
function notPermitted(): readonly [FaultCode, string] {
  return process.geteuid?.() === 0
    ? [
        'immutable',
        'it or its directory is immutable or append-only (see lsattr), or this process lacks the capability',
      ]
    : ['permission_denied', 'only its owner or root may do that'];
}
