/** Recordings in a temporary data directory. */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import type { RecorderEvents } from '../../daemon/terminal/recordings/recorder.js';
import type { RecordingHead } from '../../daemon/terminal/recordings/recording.js';
import { exists } from '../../daemon/terminal/recordings/recording-files.js';
import type { RecordingStore, RecordingsOptions } from '../../daemon/terminal/recordings/recordings.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { newIds, temporaryDirectory } from './database.js';
import { until as waitUntil } from './until.js';

const address = pathToFileURL(
  fileURLToPath(new URL('../../dist/daemon/terminal/recordings/recordings.js', import.meta.url)),
);
const built = (await import(address.href)) as typeof import('../../daemon/terminal/recordings/recordings.js');

/** As they were built, for their thread is a file beside them; what they throw is a fault of this copy. */
export function createRecordings(options: RecordingsOptions): RecordingStore {
  const store = built.createRecordings(options);
  return {
    create: (head, events) => store.create(head, events).catch(rethrow),
    recover: (head, events) => store.recover(head, events).catch(rethrow),
    locate: (path) => store.locate(path),
    durableSize: (sessionId) => store.durableSize(sessionId),
    cleanUp: (isActive) => store.cleanUp(isActive),
    stop: () => store.stop(),
  };
}

function rethrow(error: Fault): never {
  throw new Fault(error.code, error.message, { cause: error });
}

export const realClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

const newId = newIds();

export const newHead = (more: Partial<RecordingHead> = {}): RecordingHead => ({
  sessionId: newId(),
  openedAt: Date.now(),
  cols: 80,
  rows: 24,
  term: 'xterm-256color',
  shell: '/bin/bash',
  command: null,
  nodeId: 'ab'.padEnd(32, '0'),
  nodeName: 'web-01',
  operator: 'ada',
  kept: null,
  ...more,
});

export interface Told extends RecorderEvents {
  durable: number;
  stopped: { readonly state: string; readonly reason: string } | null;
}

export function newEvents(): Told {
  const told: Told = {
    durable: 0,
    stopped: null,
    onDurable: (offset) => {
      told.durable = offset;
    },
    onStopped: (state, reason) => {
      told.stopped = { state, reason };
    },
  };
  return told;
}

export function openRecordings(more: Partial<RecordingsOptions> = {}) {
  const dataDir = more.dataDir ?? temporaryDirectory();
  const options = { dataDir, clock: realClock, logger: silentLogger, maxBytes: 2 ** 28, minFreeBytes: 0, ...more };
  const recordings = createRecordings(options);
  onTestFinished(() => recordings.stop());
  return { dataDir, recordings };
}

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** The plain bytes of a recording, whatever its name is now. */
export function readPlain(dataDir: string, path: string): Buffer {
  try {
    return readFileSync(join(dataDir, path));
  } catch {
    return gunzipSync(readFileSync(join(dataDir, `${path}.gz`)));
  }
}

export const until = (what: string, isSo: () => boolean | Promise<boolean>): Promise<void> => waitUntil(isSo, what);

export const compressed = (dataDir: string, path: string): Promise<void> =>
  until(
    'the recording is compressed',
    async () => !(await exists(join(dataDir, path))) && (await exists(join(dataDir, `${path}.gz`))),
  );
