/** Bytes that were read are collected before V8 looks at the whole heap. */
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { YoungMemory } from '../../../src/terminal/young-memory.js';

const MEGABYTE = 1024 * 1024;
const collections: number[] = [];
const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) collections.push((entry as { detail?: { kind: number } }).detail?.kind ?? 0);
});

const minor = () => collections.filter((kind) => kind === constants.NODE_PERFORMANCE_GC_MINOR).length;

afterEach(() => observer.disconnect());

describe('what was read', () => {
  it('is collected every few megabytes, and only what is young of it', async () => {
    observer.observe({ entryTypes: ['gc'] });
    const young = new YoungMemory();
    young.read(MEGABYTE);
    await turn();
    await wait(20);
    const before = minor();
    for (let round = 0; round < 60; round += 1) {
      young.read(MEGABYTE);
      await turn();
    }
    // They are reported later, and V8 may have come to one of them by itself.
    for (let left = 100; left > 0 && minor() - before < 14; left -= 1) await wait(20);
    expect(minor() - before).toBeGreaterThanOrEqual(14);
  });

  it('leaves no function behind with which others could collect', () => {
    const young = new YoungMemory();
    young.read(10 * MEGABYTE);
    expect('gc' in globalThis).toBe(false);
  });
});
