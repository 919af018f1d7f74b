/** The home directory that the user database names. */
import { userInfo } from 'node:os';
import { Fault } from '../kernel/fault.js';

/** Returns it, whatever HOME says. Throws `usage` for a user without an entry, as in some containers. */
export function accountHome(): string {
  try {
    return userInfo().homedir;
  } catch (cause) {
    throw new Fault(
      'usage',
      'this user has no home directory: HOME is empty or relative, and the user database has none',
      {
        hint: 'set HOME to an absolute path',
        cause,
      },
    );
  }
}
