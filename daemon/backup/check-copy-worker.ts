/** Worker thread of `StoreCheck`: checks a copy of the store and posts the damage found, or null. */
import { parentPort, workerData } from 'node:worker_threads';
import { damageOf, withRawStore } from './raw-store.js';

void withRawStore(String(workerData), (connection) => damageOf(connection, 'integrity_check')).then((damage) =>
  parentPort?.postMessage(damage),
);
