/** Parses times and durations as operators type them. */
import { Fault } from '../kernel/fault.js';
import { withoutLeapSecond } from '../kernel/leap-second.js';

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
const AGO = /^(\d{1,9})\s*(s|m|h|d|w)(?:\s+ago)?$/i;
const AHEAD = /^(?:in\s+)?(\d{1,6})\s*(s|m|h|d|w)$/i;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
/** Unix seconds. Fewer digits are more likely a duration without a unit. */
const UNIX_SECONDS = /^\d{10}$/;
const RFC_3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2})$/;

/**
 * Parses RFC 3339, a date (midnight UTC), Unix seconds, or an age such as `2h ago` or `30m`. Returns RFC 3339 in UTC.
 * @param now Unix milliseconds
 * @throws Fault `usage` naming the flag
 */
export function parseWhen(text: string, flag: string, now: number): string {
  const span = spanOf(AGO, text);
  const moment = span === null ? momentOf(text) : new Date(now - span);
  if (!Number.isNaN(moment.getTime())) return moment.toISOString();
  throw noTime(flag, text, 'such as 2025-03-01T12:00:00Z, 2025-03-01 or "2h ago"');
}

/**
 * Parses a future time: RFC 3339, a date (midnight UTC), Unix seconds, or a distance such as `30d` or `in 12h`. Returns RFC 3339 in UTC.
 * @param now Unix milliseconds
 * @throws Fault `usage` naming the flag, also for a time in the past
 */
export function parseAhead(text: string, flag: string, now: number): string {
  const span = spanOf(AHEAD, text);
  const moment = span === null ? momentOf(text) : new Date(now + span);
  if (Number.isNaN(moment.getTime())) throw noTime(flag, text, 'such as 2030-01-31, 30d or 12h');
  if (moment.getTime() > now) return moment.toISOString();
  throw new Fault('usage', `${flag} ${text} is over already`, { hint: 'give a time ahead, such as 30d' });
}

/** Returns milliseconds, or null if the text is not a duration. */
function spanOf(pattern: RegExp, text: string): number | null {
  const [, amount, unit] = pattern.exec(text.trim()) ?? [];
  if (amount === undefined || unit === undefined) return null;
  return Number(amount) * (UNITS[unit.toLowerCase()] ?? 0) * 1000;
}

function momentOf(given: string): Date {
  if (UNIX_SECONDS.test(given)) return new Date(Number(given) * 1000);
  const text = withoutLeapSecond(given);
  const isTime = (DATE.test(text) || RFC_3339.test(text)) && isDay(text.slice(0, 10));
  return new Date(isTime ? text.replace(/^(\S+) (?=\d)/, '$1T') : Number.NaN);
}

/** Returns false for the 30th of February, which `Date` takes for a day of March. */
function isDay(date: string): boolean {
  const midnight = new Date(`${date}T00:00:00Z`);
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date);
}

const noTime = (flag: string, text: string, hint: string): Fault =>
  new Fault('usage', `${flag} takes a time, not "${text}"`, { hint });

/** Spans of time as people give them. */
const SPAN = /^(\d{1,9})\s*(s|m|h|d|w)$/i;

/**
 * Parses a duration such as `90s`, `30m`, `2h` or `7d`. Returns whole seconds, at least one.
 * @throws Fault `usage` naming the flag
 */
export function parseDuration(text: string, flag: string): number {
  const [, amount = '', unit = ''] = SPAN.exec(text.trim()) ?? [];
  const seconds = Number(amount) * (UNITS[unit.toLowerCase()] ?? 0);
  if (seconds >= 1) return seconds;
  throw new Fault('usage', `${flag} takes a duration, not "${text}"`, { hint: 'such as 30m, 2h or 7d' });
}
