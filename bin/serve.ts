/** `orch serve`: wires the orchestrator to this process. */
import { randomBytes, randomFillSync } from 'node:crypto';
import { userInfo } from 'node:os';
import { monotonicFactory } from 'ulid';
import type { BootstrapOperator } from '../daemon/first-operator.js';
import { serve as runServe } from '../daemon/serve.js';
import { standardKeyPath } from '../src/client/operator-files.js';
import { publicKeyOfKeyObject } from '../src/identity/key-object.js';
import { loadKey, wantsPassphrase } from '../src/identity/private-key.js';
import { Fault, isFault } from '../src/kernel/fault.js';
import { isName } from '../src/kernel/ids.js';
import type { ServeFlags } from '../src/programs/serve.js';
import { createLogger } from './log.js';
import { stopSignal, systemClock } from './this-process.js';

export async function serve(flags: ServeFlags): Promise<number> {
  process.umask(0o077);
  return runServe({
    flags,
    env: process.env,
    isRoot: process.geteuid?.() === 0,
    clock: systemClock,
    newId: monotonicFactory(pooledRandom()),
    randomBytes,
    createLogger: (options) => createLogger({ ...options, destination: process.stderr }),
    ownOperator,
    print: (text) => process.stdout.write(text),
    onReload: (reload) => process.on('SIGHUP', reload),
    onFatal: () => process.exit(70),
    onLateStop: () => process.exit(1),
    signal: stopSignal(),
  });
}

/** Bytes drawn from the cryptographic source at once. */
const RANDOM_POOL = 4096;

/**
 * Returns a source of random fractions in [0, 1) with 8 bits each. The library's own source asks the system for every
 * byte, which is most of the cost of an ID, and every request of the API gets an ID.
 */
function pooledRandom(): () => number {
  const pool = Buffer.alloc(RANDOM_POOL);
  let used = RANDOM_POOL;
  return () => {
    if (used === RANDOM_POOL) {
      randomFillSync(pool);
      used = 0;
    }
    const byte = pool.readUInt8(used);
    pool[used] = 0;
    used += 1;
    return byte / 256;
  };
}

/**
 * Returns the invoking user's operator key for the first start; null without a readable one.
 * @throws Fault `bootstrap_required` for an encrypted key, `key_invalid`, `key_permissions`
 */
function ownOperator(): BootstrapOperator | null {
  const path = standardKeyPath(process.env);
  try {
    return { publicKey: publicKeyOfKeyObject(loadKey(path)), username: ownName() };
  } catch (error) {
    if (isFault(error, 'key_unreadable')) return null;
    if (wantsPassphrase(error)) throw locked(path, error);
    throw error;
  }
}

const locked = (path: string, cause: unknown): Fault =>
  new Fault('bootstrap_required', `there is no operator yet, and your own key ${path} has a passphrase`, {
    hint: 'name the public key, which "orch operator init" has shown, with --bootstrap-key, and yourself with --bootstrap-username',
    cause,
  });

/** Converts the user's name to an operator's name; `admin` for a user without a name, as in a container. */
function ownName(): string {
  const name = accountName()
    .normalize('NFC')
    .replace(/[^\p{L}\p{Nd}_-]/gu, '-')
    .replace(/^\P{L}+/u, '');
  return isName(name) ? name : 'admin';
}

function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return '';
  }
}
