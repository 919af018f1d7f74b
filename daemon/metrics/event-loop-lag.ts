/**
 * Lag of the event loop, under the names of prom-client's default metrics. The library's histogram wakes an idle process
 * a hundred times a second; with a coarser resolution its values would contain that resolution. The benchmark row of
 * the idle orchestrator misses its goal with either.
 */
import { createHistogram, performance } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';

/** Milliseconds between two samples. */
const SAMPLE_MS = 1_000;
/** Resolution in milliseconds with which the library's own histogram never wakes the process: over three years. */
export const NEVER_MS = 1e11;

const VALUES = {
  min: 'The minimum recorded event loop delay.',
  max: 'The maximum recorded event loop delay.',
  mean: 'The mean of the recorded event loop delays.',
  stddev: 'The standard deviation of the recorded event loop delays.',
  p50: 'The 50th percentile of the recorded event loop delays.',
  p90: 'The 90th percentile of the recorded event loop delays.',
  p99: 'The 99th percentile of the recorded event loop delays.',
} as const;

/** Replaces the library's metrics of the delays between two scrapes by those of the delays of a timer. */
export function collectEventLoopLag(registry: Registry): void {
  const delays = createHistogram();
  let due = performance.now() + SAMPLE_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    delays.record(Math.max(1, Math.round((now - due) * 1e6)));
    due = now + SAMPLE_MS;
  }, SAMPLE_MS);
  timer.unref();
  const secondsOf = (value: keyof typeof VALUES): number => {
    if (delays.count === 0) return 0;
    return (
      (value === 'p50' || value === 'p90' || value === 'p99'
        ? delays.percentile(Number(value.slice(1)))
        : delays[value]) / 1e9
    );
  };
  const names = Object.keys(VALUES) as (keyof typeof VALUES)[];
  for (const value of names) {
    const name = `nodejs_eventloop_lag_${value}_seconds`;
    registry.removeSingleMetric(name);
    new Gauge({
      name,
      help: VALUES[value],
      registers: [registry],
      collect() {
        this.set(secondsOf(value));
        // The last of them in a scrape begins the next period.
        if (value === names.at(-1)) delays.reset();
      },
    });
  }
}
