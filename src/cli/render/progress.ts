/** Progress on standard error: a live line on a terminal, else a plain line for each finished step. */
import type { Clock } from '../../kernel/clock.js';
import type { Line } from '../outcome.js';
import { type Paint, plainText } from './paint.js';
import type { OutputStream } from './streams.js';
import { cutToWidth, sanitizeLine } from './terminal-text.js';

export interface Progress {
  /** Replaces the live line, at once or a little later. Does nothing without a terminal. A line that another one replaces is not made. */
  live(lineOf: () => Line): void;
  /** Prints a finished step as a plain line. Does nothing on a terminal. */
  step(line: Line): void;
  /** Erases the live line. */
  end(): void;
}

interface ProgressOptions {
  readonly stderr: OutputStream;
  readonly paint: Paint;
  /** False to show nothing, as for `-o json`. */
  readonly shown: boolean;
  readonly clock: Clock;
}

/** Minimum milliseconds between updates of the live line. */
const PACE = 50;

const ERASE = '\r\u001b[2K';

export function createProgress({ stderr, paint, shown, clock }: ProgressOptions): Progress {
  if (!shown) return { live: () => {}, step: () => {}, end: () => {} };
  let drawn = false;
  let last = Number.NEGATIVE_INFINITY;
  let next: (() => Line) | null = null;
  let timer: NodeJS.Timeout | null = null;
  const erase = () => {
    if (drawn) stderr.write(ERASE);
    drawn = false;
  };
  const draw = () => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (next === null) return;
    last = clock.monotonic();
    erase();
    // A wrapped line could not be erased.
    stderr.write(cutToWidth(sanitizeLine(plainText(next())), (stderr.columns ?? 80) - 1));
    next = null;
    drawn = true;
  };
  return {
    live: (lineOf) => {
      if (!stderr.isTTY) return;
      next = lineOf;
      const wait = PACE - (clock.monotonic() - last);
      if (wait <= 0) draw();
      else timer ??= setTimeout(draw, wait).unref();
    },
    step: (line) => {
      if (!stderr.isTTY) stderr.write(`${paint.line(line)}\n`);
    },
    end: () => {
      next = null;
      draw();
      erase();
    },
  };
}
