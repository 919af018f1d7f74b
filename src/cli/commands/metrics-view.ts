/** How measurements are shown. */
import type { MetricsSample } from '../../kernel/metrics-sample.js';
import { formatAge, formatBytes, formatDuration, formatTime } from '../format.js';
import { bar, sparkline } from '../render/chart.js';
import { fields, headed, type Line, styled, type View } from '../view.js';

/** Columns of a picture of the past. */
const WIDTH = 60;

export function sampleView(name: string, sample: MetricsSample, now: number): View {
  const { cpu_usage: cpu, collected_at: at, uptime } = sample;
  return headed(
    `${name}, ${formatAge(at, now)}`,
    fields(
      ['Processors', cpu === null ? '-' : [bar(cpu / 100), ` ${percent(cpu)}`]],
      ['Memory', shareOf(sample.memory_used, sample.memory_total)],
      ['Disk', shareOf(sample.disk_used, sample.disk_total)],
      ['Uptime', uptime === null ? '-' : formatDuration(uptime)],
    ),
  );
}

/** Each as a line of blocks, from the oldest on the left, and what it was last. */
export function historyView(name: string, samples: readonly MetricsSample[]): View {
  const [first] = samples;
  const last = samples.at(-1);
  const span = `${formatTime(first?.collected_at ?? null)} to ${formatTime(last?.collected_at ?? null)}`;
  const row = (share: (sample: MetricsSample) => number | null): Line => {
    const values = samples.map(share);
    const newest = values.at(-1) ?? null;
    return [sparkline(values, 100, WIDTH), newest === null ? '' : ` ${percent(newest)}`];
  };
  return headed(
    `${name}, ${span}`,
    fields(
      ['Processors', row(({ cpu_usage: cpu }) => cpu)],
      ['Memory', row(({ memory_used: used, memory_total: total }) => percentOf(used, total))],
      ['Disk', row(({ disk_used: used, disk_total: total }) => percentOf(used, total))],
    ),
  );
}

export const watchHead = (): Line => styled('strong', 'TIME                  CPU     MEMORY  DISK');

export function sampleLine(sample: MetricsSample): Line {
  const memory = percentOf(sample.memory_used, sample.memory_total);
  const disk = percentOf(sample.disk_used, sample.disk_total);
  const cells = [sample.cpu_usage, memory, disk].map((value) => (value === null ? '-' : percent(value)).padEnd(6));
  return `${formatTime(sample.collected_at)}  ${cells.join('  ')}`.trimEnd();
}

export const percent = (value: number): string => `${value.toFixed(1)}%`;

export const percentOf = (used: number | null, total: number | null): number | null =>
  used === null || total === null || total === 0 ? null : (used / total) * 100;

function shareOf(used: number | null, total: number | null): Line {
  const share = percentOf(used, total);
  if (share === null || used === null || total === null) return '-';
  return [bar(share / 100), ` ${percent(share)} of ${formatBytes(total)}`];
}
