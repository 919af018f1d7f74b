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

interface Pipe {
  /** Bytes a millisecond that the consumer takes. */
  readonly rate: number;
  readonly ms: number;
  /** Milliseconds from the word of a limit to the output that it allows. */
  readonly delay?: number;
  /** Called each millisecond. */
  readonly onTick?: () => void;
}

/**
 * A producer that always sends what it may, and a consumer that takes what has come.
 * @returns the bytes that were taken
 */
function stream(window: ConsumerWindow, clock: FakeClock, { rate, ms, delay = 1, onTick }: Pipe): number {
  const start = window.credit.consumed;
  const coming = [{ at: clock.time, limit: window.credit.limit }];
  let received = start;
  let taken = start;
  for (let tick = 0; tick < ms; tick += 1) {
    clock.time += 1;
    onTick?.();
    while (coming[0] !== undefined && coming[0].at <= clock.time) received = coming.shift()?.limit ?? received;
    // In pieces, as frames come.
    for (const end = Math.min(taken + rate, received); taken < end; ) {
      taken = Math.min(taken + 16_384, end);
      const credit = window.take(taken, taken === received);
      if (credit !== null) coming.push({ at: clock.time + delay, limit: credit.limit });
    }
  }
  return taken - start;
}

/**
 * A producer that always sends what it may over a link of `rate`, which queues the rest, and a consumer that takes all at once.
 * @returns the bytes that were taken
 */
function link(window: ConsumerWindow, clock: FakeClock, { rate, ms, delay = 1, onTick }: Pipe): number {
  const start = window.credit.consumed;
  const limits = [{ at: clock.time, limit: window.credit.limit }];
  const coming: { readonly at: number; readonly end: number }[] = [];
  let allowed = start;
  let sent = start;
  let taken = start;
  for (let tick = 0; tick < ms; tick += 1) {
    clock.time += 1;
    onTick?.();
    while (limits[0] !== undefined && limits[0].at <= clock.time) allowed = limits.shift()?.limit ?? allowed;
    sent = Math.min(sent + rate, allowed);
    coming.push({ at: clock.time + delay / 2, end: sent });
    while (coming[0] !== undefined && coming[0].at <= clock.time) {
      taken = coming.shift()?.end ?? taken;
      const credit = window.take(taken, true);
      if (credit !== null) limits.push({ at: clock.time + delay / 2, limit: credit.limit });
    }
  }
  return taken - start;
}

const sizeOf = (window: ConsumerWindow): number => window.credit.limit - window.credit.consumed;

describe('what it allows', () => {
  it('begins at the offset of the stream', () => {
    const window = new ConsumerWindow({ clock: new FakeClock(), first: FIRST, offset: 1_000 });
    expect(window.credit).toEqual({ consumed: 1_000, limit: 1_000 + FIRST });
  });

  it('is never taken back, never behind what was taken, and never starves the producer', () => {
    const act = fc.oneof(
      fc.record({ take: fc.nat({ max: 300_000 }), isDry: fc.boolean(), wait: fc.nat({ max: 2_000 }) }),
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
          // A producer sends only as much as it may.
          if ('take' in step) told = window.take(Math.min(before.consumed + step.take, told.limit), step.isDry) ?? told;
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
  it('once a quarter of the first window was taken since it spoke last', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    expect(window.take(FIRST / 4 - 1)).toBeNull();
    expect(window.take(FIRST / 4)).toEqual({ consumed: FIRST / 4, limit: FIRST / 4 + FIRST });
    expect(window.take(FIRST / 4 + 1)).toBeNull();
    expect(window.take(FIRST / 2)).not.toBeNull();
  });

  it('not for what it has reported already', () => {
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

describe('how it follows the need', () => {
  it('a slow terminal has as little in flight as may be', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: MOST });
    const taken = stream(window, clock, { rate: 2_000, ms: 5_000 });
    expect(taken).toBe(2_000 * 5_000);
    expect(sizeOf(window)).toBeLessThanOrEqual(LEAST);
  });

  it('a fast one that is near has little in flight, and hardly waits', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: MOST });
    const taken = stream(window, clock, { rate: 30_000, ms: 5_000 });
    expect(taken).toBeGreaterThan(0.95 * 30_000 * 5_000);
    expect(sizeOf(window)).toBeLessThan(MOST / 3);
  });

  it('a fast one that is far is given as much as may be', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    window.measured(60);
    const taken = stream(window, clock, { rate: 50_000, ms: 5_000, delay: 60 });
    expect(taken).toBeGreaterThan((0.9 * MOST * 5_000) / 60);
  });

  it('a slower one that is far is given what is on its way', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    window.measured(500);
    const taken = stream(window, clock, { rate: 1_000, ms: 30_000, delay: 500 });
    expect(taken).toBeGreaterThan(0.8 * 1_000 * 30_000);
    expect(sizeOf(window)).toBeLessThanOrEqual(1_000 * (500 + 150));
  });

  it.each([100, 200, 500, 700])('whose producer is %i ms behind the end that answers pings, too', (delay) => {
    for (const rate of [1_000, 5_000, 50_000]) {
      const clock = new FakeClock();
      const window = new ConsumerWindow({ clock, first: FIRST });
      window.measured(1);
      const taken = stream(window, clock, { rate, ms: 30_000, delay });
      expect(taken).toBeGreaterThan(0.8 * Math.min(rate, MOST / delay) * 30_000);
    }
  });

  it('a slower one that is far never has much more in flight than it needs', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    window.measured(200);
    let most = 0;
    const onTick = () => {
      most = Math.max(most, sizeOf(window));
    };
    stream(window, clock, { rate: 1_000, ms: 20_000, delay: 200, onTick });
    expect(most).toBeLessThanOrEqual(2 * 1_000 * (200 + 150));
  });

  it.each([1_000, 3_000])('one behind a link of %i KB/s has little on it beyond what the way holds', (rate) => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    window.measured(100);
    let total = 0;
    let ticks = 0;
    const onTick = () => {
      ticks += 1;
      if (ticks > 3_000) total += sizeOf(window);
    };
    const taken = link(window, clock, { rate, ms: 10_000, delay: 100, onTick });
    expect(taken).toBeGreaterThan(0.9 * rate * 10_000);
    expect(total / (ticks - 3_000)).toBeLessThan(1.5 * Math.max(rate * 100, LEAST));
  });

  it('a fast one that is far is filled within a few round trips', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    window.measured(100);
    const taken = stream(window, clock, { rate: 10_000, ms: 1_500, delay: 100 });
    expect(taken).toBeGreaterThan(0.75 * 10_000 * 1_500);
  });

  it('a program that pauses often leaves the window as it is', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    window.measured(100);
    stream(window, clock, { rate: 15_000, ms: 5_000, delay: 100 });
    const before = sizeOf(window);
    window.take(window.credit.limit, true);
    for (let turn = 0; turn < 40; turn += 1) {
      clock.time += 2_000;
      window.take(window.credit.consumed + 40_000, true);
    }
    expect(sizeOf(window)).toBeGreaterThan(before / 2);
  });

  it('grows and shrinks with the need, within its bounds', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    stream(window, clock, { rate: 20_000, ms: 2_000, delay: 40 });
    const far = sizeOf(window);
    stream(window, clock, { rate: 50, ms: 60_000 });
    const slow = sizeOf(window);
    expect(far).toBeGreaterThan(400_000);
    expect(far).toBeLessThanOrEqual(MOST);
    expect(slow).toBeLessThanOrEqual(LEAST);
    expect(stream(window, clock, { rate: 20_000, ms: 2_000, delay: 40 })).toBeGreaterThan(0.7 * 20_000 * 2_000);
  });

  it('a pause is no slowness for long', () => {
    const clock = new FakeClock();
    const window = new ConsumerWindow({ clock, first: FIRST });
    stream(window, clock, { rate: 20_000, ms: 1_000, delay: 40 });
    clock.time += 600_000;
    stream(window, clock, { rate: 20_000, ms: 1_000, delay: 40 });
    expect(stream(window, clock, { rate: 20_000, ms: 500, delay: 40 })).toBeGreaterThan(0.8 * 20_000 * 500);
  });
});
