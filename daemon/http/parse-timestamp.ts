/** Parses timestamps sent by people and programs. */
import { withoutLeapSecond } from '../../src/kernel/leap-second.js';

const FORM = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?([Zz]|[+-]\d\d:?\d\d)?)?$/;

/**
 * Returns the Unix milliseconds of an RFC 3339 timestamp. ISO 8601 dates alone and times without an offset are
 * accepted too, both in UTC. A leap second counts as the end of the second before it. Returns null for anything else,
 * such as the 30th of February.
 */
export function parseTimestamp(text: string): number | null {
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = '', offset = 'Z'] =
    FORM.exec(withoutLeapSecond(text)) ?? [];
  if (year === undefined) return null;
  const parts = [Number(year), Number(month), Number(day), Number(hour), Number(minute), Number(second)] as const;
  const date = new Date(0);
  date.setUTCFullYear(parts[0], parts[1] - 1, parts[2]);
  date.setUTCHours(parts[3], parts[4], parts[5], Number(fraction.slice(0, 3).padEnd(3, '0')));
  const read = [
    date.getUTCFullYear(),
    date.getUTCMonth() + 1,
    date.getUTCDate(),
    date.getUTCHours(),
    date.getUTCMinutes(),
    date.getUTCSeconds(),
  ];
  const shift = offsetMs(offset);
  if (shift === null || read.some((value, index) => value !== parts[index])) return null;
  return date.getTime() - shift;
}

function offsetMs(offset: string): number | null {
  if (/^z$/i.test(offset)) return 0;
  const [hours, minutes] = [Number(offset.slice(1, 3)), Number(offset.slice(-2))];
  if (hours > 23 || minutes > 59) return null;
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}
