/** Checks a copy of the store beside the orchestrator's own work: a large one takes seconds. */
import { Worker } from 'node:worker_threads';
import type { SealedCopy, SealOptions } from './seal-copy.js';

/** Throws as `sealCopy` does. */
export function sealInThread(options: SealOptions): Promise<SealedCopy> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./seal-copy-worker.js', import.meta.url), { workerData: options });
    worker.once('message', (sealed: SealedCopy) => resolve(sealed));
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the check of the copy ended with ${code}`)));
  });
}
