/** Entry of the recording thread. */
import { parentPort, workerData } from 'node:worker_threads';
import { RecordingOpener, RecordingService } from './recording-service.js';
import type { RecordingWorkerData, ToRecordingThread } from './recording-thread.js';

if (parentPort === null) throw new Error('this file is the entry of a worker thread');
const port = parentPort;

const clock = { now: () => Date.now(), monotonic: () => performance.now() };
const desk = new RecordingService({
  opener: new RecordingOpener({ ...(workerData as RecordingWorkerData), clock }),
  post: (message) => port.postMessage(message),
});
port.on('message', (message: ToRecordingThread) => desk.take(message));
