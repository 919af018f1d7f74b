import type { Clock } from '../../../src/kernel/clock.js';

/** A clock that stands still until it is told otherwise. */
export class TestClock implements Clock {
  private passed = 0;

  now(): number {
    return 1_760_000_000_000 + this.passed;
  }

  monotonic(): number {
    return this.passed;
  }

  advance(ms: number): void {
    this.passed += ms;
  }
}
