/** A thread that gives way lowers its own priority, and nobody else's. */
import { once } from 'node:events';
import { getPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';

const GIVE_WAY = new URL('../../../dist/daemon/terminal/give-way.js', import.meta.url).href;

const PROGRAM = `
  import { readlinkSync } from 'node:fs';
  import { getPriority } from 'node:os';
  import { parentPort } from 'node:worker_threads';
  const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  const before = getPriority(thread);
  const { giveWay } = await import(${JSON.stringify(GIVE_WAY)});
  giveWay();
  parentPort.postMessage([before, getPriority(thread)]);
`;

it('lets the other threads of its process go first', async () => {
  const before = getPriority();
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(PROGRAM)}`));
  const [[own, lowered]] = (await once(worker, 'message')) as [[number, number]];
  expect(own).toBe(before);
  expect(lowered).toBe(before + 10);
  expect(getPriority()).toBe(before);
  await worker.terminate();
});
