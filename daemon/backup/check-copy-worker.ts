/** Worker thread of `StoreCheck`: checks a copy of the store and posts a `CheckedCopy`. */
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../src/kernel/fault.js';
import { damageOf, isDamage, withRawStore } from './raw-store.js';

export interface CheckedCopy {
  /** First damage found; null for an intact copy, and when the check failed. */
  readonly damage: string | null;
  /** Why the check could not be made; null when it was made. */
  readonly failure: string | null;
}

const check = (): Promise<CheckedCopy> =>
  withRawStore(String(workerData), (connection) => damageOf(connection, 'integrity_check')).then(
    (damage) => ({ damage, failure: null }),
    (error: unknown) =>
      isDamage(error) ? { damage: messageOf(error), failure: null } : { damage: null, failure: messageOf(error) },
  );

void check().then((checked) => parentPort?.postMessage(checked));
