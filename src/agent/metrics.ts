/** Measures this machine at intervals, so that a request is answered at once. */
import { statfs } from 'node:fs/promises';
import { cpus, freemem, totalmem, uptime } from 'node:os';
import type { Clock } from '../kernel/clock.js';
import type { MetricsSample } from '../kernel/schema.js';

/** Processor time in milliseconds since boot, summed over all processors. */
interface ProcessorTime {
  readonly busy: number;
  readonly total: number;
}

interface MetricsOptions {
  readonly clock: Clock;
  readonly settings: () => MetricsSettings;
}

export interface MetricsSettings {
  readonly enabled: boolean;
  /** Seconds between two measurements. */
  readonly interval: number;
}

export class Metrics {
  private readonly options: MetricsOptions;
  private last: ProcessorTime | null = null;
  private newest: MetricsSample | null = null;
  private timer: NodeJS.Timeout | undefined;

  constructor(options: MetricsOptions) {
    this.options = options;
  }

  /** Starts measuring at the interval of the current settings. */
  start(): void {
    const { enabled, interval } = this.options.settings();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.start(), interval * 1000).unref();
    if (enabled) void this.measure();
    else this.newest = null;
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  /** Returns the newest sample; null when metrics are disabled. */
  async sample(): Promise<MetricsSample | null> {
    if (!this.options.settings().enabled) return null;
    return this.newest ?? (await this.measure());
  }

  private async measure(): Promise<MetricsSample> {
    const now = processorTime();
    const { used, total } = await diskUse();
    const sample: MetricsSample = {
      collected_at: Math.floor(this.options.clock.now() / 1000),
      cpu_usage: this.last === null ? null : usageBetween(this.last, now),
      memory_used: totalmem() - freemem(),
      memory_total: totalmem(),
      disk_used: used,
      disk_total: total,
      uptime: Math.floor(uptime()),
    };
    this.last = now;
    this.newest = sample;
    return sample;
  }
}

/** Returns the usage in percent with two decimals; null when no time has passed. */
export function usageBetween(before: ProcessorTime, after: ProcessorTime): number | null {
  const total = after.total - before.total;
  if (total <= 0) return null;
  const percent = ((after.busy - before.busy) / total) * 100;
  return Math.round(Math.min(100, Math.max(0, percent)) * 100) / 100;
}

function processorTime(): ProcessorTime {
  let busy = 0;
  let total = 0;
  for (const { times } of cpus()) {
    const all = times.user + times.nice + times.sys + times.idle + times.irq;
    total += all;
    busy += all - times.idle;
  }
  return { busy, total };
}

/** Returns the use of the system's file system in bytes; nulls where it cannot be read. */
async function diskUse(): Promise<{ readonly used: number | null; readonly total: number | null }> {
  try {
    const root = process.platform === 'win32' ? `${process.env.SystemDrive ?? 'C:'}\\` : '/';
    const { bsize, blocks, bfree } = await statfs(root);
    return { used: (blocks - bfree) * bsize, total: blocks * bsize };
  } catch {
    return { used: null, total: null };
  }
}
