/** The window of a consumer: what it allows, when it speaks, and how it follows the pace. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import { ConsumerWindow } from '../../../src/terminal/window.js';

const { leastWindow: LEAST, mostWindow: MOST, firstWindow: FIRST } = TERMINAL_LIMITS;

class FakeClock {
  time = 5_000;
  monotonic = (): number => this.time;
}

/**
 * A producer that always sends what it may, and a consumer that takes that many bytes a millisecond.
 * @returns the window, as bytes in flight, at the end
 */
function stream(window: ConsumerWindow, clock: FakeClock, { rate, ms }: { rate: number; ms: number }): number {
  let taken = window.credit.consumed;
  for (let tick = 0; tick < ms; tick += 1) {
    clock.time += 1;
    taken = Math.min(taken + rate, window.credit.limit);
    window.take(taken);
  }
  return window.credit.limit - window.credit.consumed;
}

describe('what it allows', () => {
  it('begins at the offset of the stream', () => {
    const window = new ConsumerWindow({ clock: new FakeClock(), first: FIRST, offset: 1_000 });
    expect(window.credit).toEqual({ consumed: 1_000, limit: 1_000 + FIRST });
  });

  it('is never taken back, never behind what was taken, and never starves the producer', () => {
    const act = fc.oneof(
      fc.record({ take: fc.nat({ max: 300_000 }), wait: fc.nat({ max: 2_000 }) }),
      fc.record({ jump: fc.integer({ min: -200_000, max: 2_000_000 }), wait: fc.nat({ max: 10 }) }),
      fc.record({ roundTrip: fc.nat({ max: 3_000 }), wait: fc.nat({ max: 10 }) }),
    );
    fc.assert(
      fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
        const clock = new FakeClock();
        const window = new ConsumerWindow({ clock, first: FIRST });
        let told = window.credit;
        for (const step of acts) {
          clock.time += step.wait;
          const before = window.credit;
          if ('roundTrip' in step) window.measured(step.roundTrip);
          if ('jump' in step) told = window.jump(Math.max(0, before.consumed + step.jump));
          // A producer sends only what it was told that it may.
          if ('take' in step) told = window.take(Math.min(before.consumed + step.take, told.limit)) ?? told;
          const now = window.credit;
          expect(now.limit).toBeGreaterThanOrEqual(before.limit);
          expect(now.limit).toBeGreaterThanOrEqual(now.consumed);
          expect(told.limit).toBe(now.limit);
        }
        // Whatever was before: a consumer that takes all that was promised tells so, and more may come.
        const last = window.take(told.limit) ?? window.credit;
        expect(last.limit).toBeGreaterThan(last.consumed);
      }),
    );
  });
});

describe('when it speaks', () => {
  it('once a quarter of the window was taken since it spoke last', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    expect(window.take(FIRST / 4 - 1)).toBeNull();
    expect(window.take(FIRST / 4)).toEqual({ consumed: FIRST / 4, limit: FIRST / 4 + FIRST });
    expect(window.take(FIRST / 4 + 1)).toBeNull();
    expect(window.take(FIRST / 2)).not.toBeNull();
  });

  it('not for what it has told already', () => {
    const window = new ConsumerWindow({ clock: new FakeClock(), first: FIRST });
    window.take(FIRST);
    expect(window.take(FIRST)).toBeNull();
    expect(window.take(10)).toBeNull();
    expect(window.credit.consumed).toBe(FIRST);
  });

  it('always after a jump', () => {
    const window = new ConsumerWindow({ clock: new FakeClock(), first: FIRST });
    expect(window.jump(10 * MOST)).toEqual({ consumed: 10 * MOST, limit: 10 * MOST + FIRST });
  });
});

describe('how it follows the pace', () => {
  it('a slow terminal has as little in flight as may be', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: MOST });
    expect(stream(window, clock, { rate: 100, ms: 30_000 })).toBeLessThanOrEqual(LEAST);
  });

  it('a fast one is given as much as may be', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    stream(window, clock, { rate: 50_000, ms: 2_000 });
    expect(window.credit.limit - window.credit.consumed).toBeGreaterThan((3 / 4) * MOST - 50_000);
  });

  it('the round trip counts, for the pace of a far one is that of its window', () => {
    const sizeAt = (roundTrip: number) => {
      const clock = new FakeClock();
      const window = new ConsumerWindow({ clock, first: FIRST });
      window.measured(roundTrip);
      // 1 MB/s: beside 150 ms of it, what is on its way.
      return stream(window, clock, { rate: 1_000, ms: 5_000 });
    };
    expect(sizeAt(0)).toBeGreaterThan(100_000);
    expect(sizeAt(0)).toBeLessThan(160_000);
    expect(sizeAt(500)).toBeGreaterThan(500_000);
    expect(sizeAt(500)).toBeLessThan(660_000);
  });

  it('grows and shrinks with the pace, within its bounds', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    const fast = stream(window, clock, { rate: 20_000, ms: 2_000 });
    const slow = stream(window, clock, { rate: 50, ms: 60_000 });
    const again = stream(window, clock, { rate: 20_000, ms: 2_000 });
    expect(fast).toBeLessThanOrEqual(MOST);
    expect(slow).toBeLessThanOrEqual(LEAST);
    expect(again).toBeGreaterThan(4 * slow);
  });

  it('a pause is no slowness for long', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    stream(window, clock, { rate: 20_000, ms: 1_000 });
    clock.time += 600_000;
    expect(stream(window, clock, { rate: 20_000, ms: 500 })).toBeGreaterThan(MOST / 2);
  });
});
