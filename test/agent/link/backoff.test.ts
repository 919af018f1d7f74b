import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Backoff } from '../../../src/agent/link/backoff.js';

const almostOne = () => 1 - Number.EPSILON;
const delays = (backoff: Backoff, count: number): readonly number[] =>
  Array.from({ length: count }, () => backoff.next());

describe('Backoff', () => {
  it('doubles from 1 s to 60 s', () => {
    expect(delays(new Backoff({ random: almostOne }), 9)).toEqual([
      999, 1_999, 3_999, 7_999, 15_999, 31_999, 59_999, 59_999, 59_999,
    ]);
  });

  it('spreads over the whole time from nothing to the ceiling', () => {
    expect(delays(new Backoff({ random: () => 0 }), 3)).toEqual([0, 0, 0]);
    expect(delays(new Backoff({ random: () => 0.5 }), 3)).toEqual([500, 1_000, 2_000]);
  });

  it('starts anew after a connection that was up, not after one that was cut at once', () => {
    const backoff = new Backoff({ random: almostOne });
    delays(backoff, 5);
    backoff.ended(100);
    expect(backoff.next()).toBe(31_999);
    backoff.ended(5_000);
    expect(delays(backoff, 2)).toEqual([999, 1_999]);
  });

  it('waits up to 3 s while nothing listens, as during a restart, but not for ever', () => {
    const backoff = new Backoff({ random: almostOne });
    const refused = () => {
      backoff.ended(10, true);
      return backoff.next();
    };
    const pauses = Array.from({ length: 25 }, refused);
    expect(pauses.slice(0, 4)).toEqual([999, 1_999, 2_999, 2_999]);
    expect(pauses.slice(4, 20).every((pause) => pause === 2_999)).toBe(true);
    expect(pauses.slice(20)).toEqual([5_999, 11_999, 23_999, 47_999, 59_999]);
    backoff.ended(5_000);
    backoff.ended(10, true);
    expect(backoff.next()).toBe(999);
  });

  it('doubles after attempts that fail otherwise, also between refusals', () => {
    const backoff = new Backoff({ random: almostOne });
    delays(backoff, 3);
    backoff.ended(10);
    expect(backoff.next()).toBe(7_999);
    backoff.ended(10, true);
    expect(backoff.next()).toBe(2_999);
    backoff.ended(10);
    expect(backoff.next()).toBe(5_999);
  });

  it('waits shorter once when a caller is waiting', () => {
    const backoff = new Backoff({ random: almostOne });
    delays(backoff, 5);
    expect(backoff.next(5_000)).toBe(4_999);
    expect(backoff.next()).toBe(59_999);
    expect(new Backoff({ random: almostOne }).next(5_000)).toBe(999);
  });

  it('never waits longer than a minute (property)', () => {
    const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.array(unit, { minLength: 1, maxLength: 100 }), (rolls) => {
        const left = [...rolls];
        const backoff = new Backoff({ random: () => left.pop() ?? 0 });
        return delays(backoff, rolls.length).every((delay) => Number.isInteger(delay) && delay >= 0 && delay < 60_000);
      }),
    );
  });
});
