/** The clock and the stop signals of this process. */
import type { Clock } from '../src/kernel/clock.js';

// `hrtime` instead of `performance`, which takes Node as long to load as the rest of a short command.
export const systemClock: Clock = { now: () => Date.now(), monotonic: () => Number(process.hrtime.bigint()) / 1e6 };

/** Returns a signal that SIGTERM and SIGINT abort. A second one ends the process at once. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort();
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  return controller.signal;
}
