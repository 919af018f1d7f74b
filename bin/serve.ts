/** `orch serve`: wires the orchestrator to this process. */
import { randomBytes } from 'node:crypto';
import { userInfo } from 'node:os';
import { monotonicFactory } from 'ulid';
import { serve as runServe } from '../daemon/serve.js';
import type { ServeFlags } from '../src/cli/programs.js';
import { standardKeyPath } from '../src/client/directories.js';
import { loadKey } from '../src/identity/key-file.js';
import { publicKeyOfKeyObject } from '../src/identity/key-object.js';
import { isFault } from '../src/kernel/fault.js';
import { createLogger } from './log.js';
import { stopSignal } from './stop-signal.js';
import { systemClock } from './system-clock.js';

export async function serve(flags: ServeFlags): Promise<number> {
  process.umask(0o077);
  return runServe({
    flags,
    env: process.env,
    isRoot: process.geteuid?.() === 0,
    clock: systemClock,
    newId: monotonicFactory(),
    randomBytes,
    createLogger: (options) => createLogger({ ...options, destination: process.stderr }),
    ownOperator,
    print: (text) => process.stdout.write(text),
    onReload: (reload) => process.on('SIGHUP', reload),
    onFatal: () => process.exit(70),
    signal: stopSignal(),
  });
}

/** The invoking user's own operator key, for the first start; null when there is none that can be read without asking. */
function ownOperator(): { readonly publicKey: string; readonly username: string } | null {
  try {
    const key = publicKeyOfKeyObject(loadKey(standardKeyPath(process.env)));
    return { publicKey: key, username: userInfo().username.replace(/[^\p{L}\p{Nd}_-]/gu, '-') };
  } catch (error) {
    if (isFault(error, 'key_unreadable', 'key_invalid')) return null;
    throw error;
  }
}
