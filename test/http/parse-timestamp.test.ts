import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseTimestamp } from '../../daemon/http/parse-timestamp.js';
import { toTimestamp } from '../../src/kernel/clock.js';

describe('a timestamp', () => {
  it.each([
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T12:00:00.5Z', '2026-03-01T12:00:00.500Z'],
    ['2026-03-01t12:00:00.123456789z', '2026-03-01T12:00:00.123Z'],
    ['2026-03-01T12:00:00+02:00', '2026-03-01T10:00:00.000Z'],
    ['2026-03-01T00:00:00-05:30', '2026-03-01T05:30:00.000Z'],
    ['2026-03-01T12:00:00+0200', '2026-03-01T10:00:00.000Z'],
    ['2026-03-01 12:00:00', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T12:00', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01', '2026-03-01T00:00:00.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ])('%s is %s', (text, expected) => {
    expect(toTimestamp(parseTimestamp(text) ?? Number.NaN)).toBe(expected);
  });

  it.each([
    '',
    'yesterday',
    '1772366400',
    '2026-02-30',
    '2025-02-29',
    '2026-13-01',
    '2026-00-10',
    '2026-03-01T24:00:00Z',
    '2026-03-01T12:60:00Z',
    '2026-03-01T12:00:60Z',
    '2026-03-01T12:00:00+24:00',
    '2026-03-01T12:00:00+02:60',
    '2026-03-01T12:00:00 +',
    '2026-3-1',
    'T12:00:00Z',
    '2026-03-01T12:00:00Zjunk',
    ' 2026-03-01',
  ])('%j is none', (text) => {
    expect(parseTimestamp(text)).toBeNull();
  });

  it('that we print is read back (property)', () => {
    const day = fc.date({
      noInvalidDate: true,
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59Z'),
    });
    fc.assert(fc.property(day, (date) => parseTimestamp(toTimestamp(date.getTime())) === date.getTime()));
  });
});
