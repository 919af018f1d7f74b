/** The thread of `StoreCheck`: looks through a copy of the store, and answers with the damage that it finds, or null. */
import { parentPort, workerData } from 'node:worker_threads';
import { damageOf, withRawStore } from './raw-store.js';

void withRawStore(String(workerData), (connection) => damageOf(connection, 'integrity_check')).then((damage) =>
  parentPort?.postMessage(damage),
);
