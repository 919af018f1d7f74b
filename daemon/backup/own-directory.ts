/** The data directory of an orchestrator, before anything in it is touched: there, and this user's. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';

export const STORE_FILE = 'orch.db';

/** Throws `data_dir_invalid` where there is none, `permission_denied` for another user's. */
export function requireOwnDirectory(path: string): void {
  const stats = look(path);
  const user = process.geteuid?.();
  if (!stats.isDirectory()) throw new Fault('data_dir_invalid', `${path} is not a directory`);
  if (user === undefined || stats.uid === user) return;
  throw new Fault('permission_denied', `${path} belongs to user ${stats.uid}, and this is user ${user}`, {
    hint: `run this as the user who runs orch serve: sudo -u '#${stats.uid}' orch serve …`,
  });
}

/** Throws `data_dir_invalid` when the directory holds no store. */
export function requireStore(path: string): void {
  requireOwnDirectory(path);
  if (existsSync(join(path, STORE_FILE))) return;
  throw new Fault('data_dir_invalid', `there is no store in ${path}`, {
    hint: 'name the data directory of orch serve with --data-dir, or its configuration file with --config',
  });
}

function look(path: string): ReturnType<typeof statSync> & object {
  try {
    return statSync(path);
  } catch (cause) {
    if (systemCodeOf(cause) === 'EACCES') {
      throw new Fault('permission_denied', `this user may not look into ${path}`, {
        hint: 'run this as the user who runs orch serve',
        cause,
      });
    }
    const why = systemCodeOf(cause) === 'ENOENT' ? 'does not exist' : `cannot be used: ${messageOf(cause)}`;
    throw new Fault('data_dir_invalid', `the data directory ${path} ${why}`, {
      hint: 'name that of orch serve with --data-dir, or its configuration file with --config',
      cause,
    });
  }
}
