/** Leap seconds of RFC 3339, which the clocks of programs do not have. */

const LEAP = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):60(?:[.,]\d{1,9})?\s?(?:[Zz]|([+-])(\d\d):?(\d\d))?$/;

/**
 * Returns a timestamp in the 60th second of a minute as the last millisecond of the second before, if a leap second can
 * be there: at the end of a month in UTC. Returns every other text as it is.
 */
export function withoutLeapSecond(text: string): string {
  const [, year, month, day, hour, minute, sign, hours = '0', minutes = '0'] = LEAP.exec(text) ?? [];
  if (year === undefined) return text;
  const shift = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
  const next = new Date(
    Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute) + 1 - shift),
  );
  const isMonthsEnd = next.getUTCDate() === 1 && next.getUTCHours() === 0 && next.getUTCMinutes() === 0;
  return isMonthsEnd ? text.replace(/(:\d\d):60(?:[.,]\d{1,9})?/, '$1:59.999') : text;
}
