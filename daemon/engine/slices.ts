/** Splits long computations into slices, so that the event loop turns between them and the API answers beside them. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Steps } from '../../src/kernel/steps.js';

/** Maximum time of all computations in one turn of the event loop, in milliseconds, if no single step takes longer. */
const SLICE_MS = 2;

/** When the first computation of this turn of the event loop began; null before it. */
let began: number | null = null;
/** Ends when the last computation that waits has had its turn. */
let lastTurn: Promise<void> = Promise.resolve();

/**
 * Runs the steps to their end and yields to the event loop after each slice. Computations at the same time share the time of
 * a turn: those that find it used up go on one after another, each in a turn of its own. Must not be called within a transaction.
 */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    while (isTimeLeft()) {
      const step = steps.next();
      if (step.done) return step.value;
    }
    lastTurn = lastTurn.then(() => nextTurn());
    await lastTurn;
    // What waited goes on in any case, however much began meanwhile.
    began = null;
  }
}

function isTimeLeft(): boolean {
  const now = performance.now();
  if (began === null) {
    began = now;
    setImmediate(() => {
      began = null;
    });
  }
  return now - began < SLICE_MS;
}
