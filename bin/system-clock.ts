/** The clock of this machine. */
import type { Clock } from '../src/kernel/clock.js';

// `performance` says the same, and Node takes as long to load it as for anything else that a short command loads.
export const systemClock: Clock = { now: () => Date.now(), monotonic: () => Number(process.hrtime.bigint()) / 1e6 };
