/**
 * Records an endless output, going on where the recording is, and prints each offset that is durable: `record-forever.mjs DIR
 * SESSION OPENED_AT`.
 */
import { createRecordings } from '../../../../dist/daemon/terminal/recordings/recordings.js';
import { outputFrom } from './output.mjs';

const [dataDir, sessionId, openedAt] = process.argv.slice(2);
const logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => logger };
const clock = { now: () => Date.now(), monotonic: () => performance.now() };
const recordings = createRecordings({ dataDir, clock, logger, maxBytes: 2 ** 30, minFreeBytes: 0 });
const head = {
  ...{ sessionId, openedAt: Number(openedAt), cols: 80, rows: 24, term: 'xterm', shell: '/bin/sh', command: null },
  ...{ nodeId: 'ab', nodeName: 'web-01', operator: 'ada', kept: null },
};
const events = {
  onDurable: (offset) => process.stdout.write(`${offset}\n`),
  onStopped: (state, reason) => process.stderr.write(`${state} ${reason}\n`),
};
const recovered = await recordings.recover(head, events).catch((error) => {
  if (error.cause?.code !== 'ENOENT') throw error;
  return null;
});
const recorder = recovered?.recorder ?? (await recordings.create(head, events));
recorder.mark('began');
let offset = recorder.durable;
setInterval(() => {
  const bytes = outputFrom(offset, 6_000 + (offset % 1_001));
  recorder.write('out', bytes);
  offset += bytes.length;
}, 1);
