/** Times as people give them. */
import { Fault } from '../kernel/fault.js';

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
const AGO = /^(\d{1,9})\s*(s|m|h|d|w)(?:\s+ago)?$/i;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const RFC_3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2})$/;

/**
 * RFC 3339, a date (its beginning in UTC), or how long ago: `2h ago`, `30m`. Gives RFC 3339 in UTC.
 * @param now Unix milliseconds
 * @throws Fault `usage` naming the flag
 */
export function parseWhen(text: string, flag: string, now: number): string {
  const [, amount, unit] = AGO.exec(text.trim()) ?? [];
  const time =
    amount !== undefined && unit !== undefined
      ? new Date(now - Number(amount) * (UNITS[unit.toLowerCase()] ?? 0) * 1000)
      : new Date(DATE.test(text) || RFC_3339.test(text) ? text.replace(/^(\S+) (?=\d)/, '$1T') : Number.NaN);
  if (!Number.isNaN(time.getTime())) return time.toISOString();
  throw new Fault('usage', `${flag} takes a time, not "${text}"`, {
    hint: 'such as 2025-03-01T12:00:00Z, 2025-03-01 or "2h ago"',
  });
}
