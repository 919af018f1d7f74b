/** The thread of the emulator: a thin shell around the screens. */
import { parentPort } from 'node:worker_threads';
import type { ToEmulator } from './emulator-messages.js';
import { Turns } from './turns.js';
import { ScreenMaker } from './virtual-screen.js';

if (parentPort === null) throw new Error('this file is the entry of a worker thread');
const port = parentPort;

const turns = new Turns({
  maker: new ScreenMaker(),
  say: (message, transfer = []) => port.postMessage(message, transfer),
  monotonic: () => performance.now(),
});
port.on('message', (message: ToEmulator) => turns.take(message));
