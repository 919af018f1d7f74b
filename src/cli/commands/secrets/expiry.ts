/** When a secret ends, as people say it. */
import { Fault } from '../../../kernel/fault.js';

const UNITS: Readonly<Record<string, number>> = { m: 60, h: 3600, d: 86_400, w: 604_800 };
const AHEAD = /^(?:in\s+)?(\d{1,6})\s*(m|h|d|w)$/i;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const RFC_3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2})$/;

/**
 * RFC 3339, a date (its beginning in UTC), or how far ahead: `30d`, `12h`. Gives RFC 3339 in UTC.
 * @param now Unix milliseconds
 * @throws Fault `usage` for what is no time, or one that is over
 */
export function parseExpiry(text: string, now: number): string {
  const [, amount, unit] = AHEAD.exec(text.trim()) ?? [];
  const time =
    amount !== undefined && unit !== undefined
      ? new Date(now + Number(amount) * (UNITS[unit.toLowerCase()] ?? 0) * 1000)
      : new Date(DATE.test(text) || RFC_3339.test(text) ? text.replace(/^(\S+) (?=\d)/, '$1T') : Number.NaN);
  if (Number.isNaN(time.getTime())) {
    throw new Fault('usage', `--expires takes a time, not "${text}"`, { hint: 'such as 2030-01-31, 30d or 12h' });
  }
  if (time.getTime() > now) return time.toISOString();
  throw new Fault('usage', `--expires ${text} is over already`, { hint: 'give a time ahead, such as 30d' });
}
