/** Progress on standard error: one live line on a terminal, one plain line for each finished thing elsewhere. */
import type { Clock } from '../../kernel/clock.js';
import type { Line } from '../outcome.js';
import { type Paint, plainText } from './paint.js';
import type { OutputStream } from './printer.js';
import { cutToWidth, sanitizeLine } from './terminal-text.js';

export interface Progress {
  /** Replaces the live line; nothing where there is none. */
  live(line: Line): void;
  /** One thing is finished: a plain line where there is no live one. */
  step(line: Line): void;
  /** Takes the live line away. */
  end(): void;
}

export interface ProgressOptions {
  readonly stderr: OutputStream;
  readonly paint: Paint;
  /** False for `-o json` and the like: nothing is shown at all. */
  readonly shown: boolean;
  readonly clock: Clock;
}

/** The eye follows no faster, in milliseconds. */
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
    live: (line) => {
      if (!stderr.isTTY || clock.monotonic() - last < PACE) return;
      last = clock.monotonic();
      erase();
      // A longer line would wrap, and the next one could not erase it.
      stderr.write(cutToWidth(sanitizeLine(plainText(line)), (stderr.columns ?? 80) - 1));
      drawn = true;
    },
    step: (line) => {
      if (!stderr.isTTY) stderr.write(`${paint.line(line)}\n`);
    },
    end: erase,
  };
}
