/** Progress on standard error: a live line on a terminal, else a plain line for each finished step. */
import type { Clock } from '../../kernel/clock.js';
import type { Line } from '../outcome.js';
import { type Paint, plainText } from './paint.js';
import type { OutputStream } from './printer.js';
import { cutToWidth, sanitizeLine } from './terminal-text.js';

export interface Progress {
  /** Replaces the live line. Does nothing, and makes no line, without a terminal or too soon after the last one. */
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
  const erase = () => {
    if (drawn) stderr.write(ERASE);
    drawn = false;
  };
  return {
    live: (lineOf) => {
      if (!stderr.isTTY || clock.monotonic() - last < PACE) return;
      last = clock.monotonic();
      erase();
      // A wrapped line could not be erased.
      stderr.write(cutToWidth(sanitizeLine(plainText(lineOf())), (stderr.columns ?? 80) - 1));
      drawn = true;
    },
    step: (line) => {
      if (!stderr.isTTY) stderr.write(`${paint.line(line)}\n`);
    },
    end: erase,
  };
}
