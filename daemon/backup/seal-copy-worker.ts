/** The thread of `sealInThread`. What it throws ends it, and is told to whoever has started it. */
import { parentPort, workerData } from 'node:worker_threads';
import { type SealOptions, sealCopy } from './seal-copy.js';

void sealCopy(workerData as SealOptions).then((sealed) => parentPort?.postMessage(sealed));
