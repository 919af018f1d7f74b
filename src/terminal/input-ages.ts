/** When input was typed, by its offsets. */
import type { Clock } from '../kernel/clock.js';

interface Mark {
  /** Offset behind the last byte. */
  readonly end: number;
  /** By the monotonic clock and by the wall clock: the first may stand still while a machine sleeps. */
  readonly monotonic: number;
  readonly now: number;
}

/** Input that follows sooner shares the time of the input before it, in milliseconds. */
const TOGETHER = 200;

export class InputAges {
  private readonly clock: Pick<Clock, 'monotonic' | 'now'>;
  private marks: Mark[] = [];

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>) {
    this.clock = clock;
  }

  /** The bytes before `end` that have no time yet were typed now. */
  typed(end: number): void {
    const monotonic = this.clock.monotonic();
    const last = this.marks.at(-1);
    if (last !== undefined && monotonic - last.monotonic < TOGETHER)
      this.marks[this.marks.length - 1] = { ...last, end };
    else this.marks.push({ end, monotonic, now: this.clock.now() });
  }

  /** Milliseconds since the first byte at or behind the offset was typed; 0 without one. */
  age(from: number): number {
    const mark = this.marks.find(({ end }) => end > from);
    if (mark === undefined) return 0;
    return Math.max(0, this.clock.monotonic() - mark.monotonic, this.clock.now() - mark.now);
  }

  /** Forgets what is before the offset. */
  dropBefore(offset: number): void {
    while ((this.marks[0]?.end ?? Number.POSITIVE_INFINITY) <= offset) this.marks.shift();
  }

  /** Forgets what is at or behind the offset. */
  dropFrom(offset: number): void {
    const first = this.marks.findIndex(({ end }) => end > offset);
    if (first < 0) return;
    const cut = this.marks[first] as Mark;
    this.marks.length = first;
    if ((this.marks.at(-1)?.end ?? Number.NEGATIVE_INFINITY) < offset) this.marks.push({ ...cut, end: offset });
  }

  /** The same input has other offsets. */
  move(by: number): void {
    if (by !== 0) this.marks = this.marks.map((mark) => ({ ...mark, end: mark.end + by }));
  }
}
