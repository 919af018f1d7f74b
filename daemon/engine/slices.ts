/** Runs long work in slices, so that requests of others and typed keys wait a few milliseconds at most. */
import { setImmediate } from 'node:timers/promises';
import type { Steps } from '../../src/kernel/steps.js';

/** Longest time between two turns of the event loop, in milliseconds, if no single step takes longer. */
const SLICE_MS = 4;

/** Runs the steps to their end, and lets the event loop turn after each slice. Never to be called within a transaction. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let began = performance.now(); ; ) {
    const step = steps.next();
    if (step.done) return step.value;
    if (performance.now() - began < SLICE_MS) continue;
    await setImmediate();
    began = performance.now();
  }
}
