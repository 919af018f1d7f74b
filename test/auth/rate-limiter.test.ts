import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RateLimiter } from '../../daemon/auth/rate-limiter.js';
import { ManualClock } from '../support/database.js';
import { faultOf } from '../support/identity.js';

const limiterOf = (limit: number) => {
  const clock = new ManualClock();
  return { clock, limiter: new RateLimiter({ clock, limit, what: 'knocks' }) };
};

describe('a rate limiter', () => {
  it('refuses what is over the limit, and says for how long', () => {
    const { clock, limiter } = limiterOf(3);
    limiter.take('a');
    clock.advance(10_000);
    limiter.take('a');
    limiter.take('a');
    clock.advance(500);
    expect(faultOf(() => limiter.take('a'))).toEqual({
      code: 'rate_limited',
      message: 'too many knocks: at most 3 a minute',
      hint: 'try again in 50 seconds',
    });
    expect(() => limiter.take('a')).toThrow(expect.objectContaining({ data: { retry_after: 50 } }));
    limiter.take('b');
    clock.advance(49_500);
    limiter.take('a');
    expect(() => limiter.take('a')).toThrow(expect.objectContaining({ data: { retry_after: 10 } }));
  });

  it('does not count what it refused', () => {
    const { clock, limiter } = limiterOf(1);
    limiter.take('a');
    for (let n = 0; n < 100; n += 1) {
      clock.advance(500);
      expect(() => limiter.take('a')).toThrow();
    }
    clock.advance(10_000);
    limiter.take('a');
  });

  it('forgets what is taken back, and only that', () => {
    const { clock, limiter } = limiterOf(2);
    limiter.take('a');
    clock.advance(10_000);
    const takeBack = limiter.take('a');
    takeBack();
    takeBack();
    clock.advance(10_000);
    limiter.take('a');
    expect(() => limiter.take('a')).toThrow(expect.objectContaining({ data: { retry_after: 40 } }));
  });

  it('does not depend on the wall clock', () => {
    const { clock, limiter } = limiterOf(1);
    limiter.take('a');
    clock.setWall(clock.now() + 86_400_000);
    expect(() => limiter.take('a')).toThrow();
  });

  it('forgets subjects beyond ten thousand, those that were quiet for the longest first', () => {
    const { limiter } = limiterOf(2);
    limiter.take('old');
    limiter.take('busy');
    for (let n = 0; n < 9_998; n += 1) limiter.take(`${n}`);
    limiter.take('busy');
    limiter.take('one more');
    expect(() => limiter.take('busy')).toThrow();
    limiter.take('old');
    limiter.take('old');
  });

  it('lets no minute see more than the limit (property)', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.array(fc.integer({ min: 0, max: 30_000 })), (limit, waits) => {
        const { clock, limiter } = limiterOf(limit);
        const taken: number[] = [];
        for (const wait of waits) {
          clock.advance(wait);
          try {
            limiter.take('a');
            taken.push(clock.monotonic());
          } catch {
            expect(taken.filter((time) => time > clock.monotonic() - 60_000)).toHaveLength(limit);
          }
        }
        for (const time of taken) {
          expect(taken.filter((other) => other >= time && other < time + 60_000).length).toBeLessThanOrEqual(limit);
        }
      }),
    );
  });
});
