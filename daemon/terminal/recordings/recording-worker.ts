/** The thread that records: a thin shell around its desk. */
import { parentPort, workerData } from 'node:worker_threads';
import { RecordingDesk } from './recording-desk.js';
import { RecordingMaker } from './recording-maker.js';
import type { RecordingWorkerData, ToRecordingThread } from './recording-messages.js';

if (parentPort === null) throw new Error('this file is the entry of a worker thread');
const port = parentPort;

const clock = { now: () => Date.now(), monotonic: () => performance.now() };
const desk = new RecordingDesk({
  maker: new RecordingMaker({ ...(workerData as RecordingWorkerData), clock }),
  say: (message) => port.postMessage(message),
});
port.on('message', (message: ToRecordingThread) => desk.take(message));
