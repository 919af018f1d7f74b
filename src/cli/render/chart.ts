/** Bars, sparklines and percentages. */

const LEVELS = '▁▂▃▄▅▆▇█';
const BAR = 20;

/**
 * Renders values as a line of blocks. If there are more values than columns, each block shows a mean.
 * @param values null for a missing measurement
 * @param most value of a full block
 */
export function sparkline(values: readonly (number | null)[], most: number, width: number): string {
  const columns = Math.min(width, values.length);
  const parts = Array.from({ length: columns }, (_, column) => {
    const from = Math.floor((column * values.length) / columns);
    const until = Math.floor(((column + 1) * values.length) / columns);
    return meanOf(values.slice(from, Math.max(until, from + 1)));
  });
  return parts.map((value) => (value === null ? ' ' : levelOf(value, most))).join('');
}

/** Renders a share of 0 to 1 as `████████············`. */
export function bar(share: number, width = BAR): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * width);
  return '█'.repeat(full) + '·'.repeat(width - full);
}

/** Renders a percentage as `12.3%`. */
export const percent = (value: number): string => `${value.toFixed(1)}%`;

/** Returns the used part in percent; null without both figures. */
export const percentOf = (used: number | null, total: number | null): number | null =>
  used === null || total === null || total === 0 ? null : (used / total) * 100;

function levelOf(value: number, most: number): string {
  const share = most <= 0 ? 0 : Math.min(1, Math.max(0, value / most));
  return LEVELS[Math.min(LEVELS.length - 1, Math.floor(share * LEVELS.length))] ?? '';
}

function meanOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}
