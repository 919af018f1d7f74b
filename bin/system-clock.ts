/** The clock of this machine. */
import type { Clock } from '../src/kernel/clock.js';

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };
