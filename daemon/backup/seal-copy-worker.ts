/** Worker thread of `sealInThread`; an error ends the thread and reaches its starter as the `error` event. */
import { parentPort, workerData } from 'node:worker_threads';
import { type SealOptions, sealCopy } from './seal-copy.js';

void sealCopy(workerData as SealOptions).then((sealed) => parentPort?.postMessage(sealed));
