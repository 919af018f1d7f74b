/** Spans of time as people give them. */
import { Fault } from '../kernel/fault.js';

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
const SPAN = /^(\d{1,9})\s*(s|m|h|d|w)$/i;

/**
 * `90s`, `30m`, `2h`, `7d`: whole seconds, at least one.
 * @throws Fault `usage` naming the flag
 */
export function parseDuration(text: string, flag: string): number {
  const [, amount = '', unit = ''] = SPAN.exec(text.trim()) ?? [];
  const seconds = Number(amount) * (UNITS[unit.toLowerCase()] ?? 0);
  if (seconds >= 1) return seconds;
  throw new Fault('usage', `${flag} takes a span of time, not "${text}"`, { hint: 'such as 30m, 2h or 7d' });
}
