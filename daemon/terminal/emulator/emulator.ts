/** Entry of the emulator's worker thread. */
import { parentPort } from 'node:worker_threads';
import { ScreenScheduler, type ToEmulator } from './screen-scheduler.js';
import { ScreenMaker } from './virtual-screen.js';

if (parentPort === null) throw new Error('this file is the entry of a worker thread');
const port = parentPort;

const turns = new ScreenScheduler({
  maker: new ScreenMaker(),
  post: (message, transfer = []) => port.postMessage(message, transfer),
  monotonic: () => performance.now(),
});
port.on('message', (message: ToEmulator) => turns.take(message));
