/** Turns spans into sanitised text for one stream, with colours where the stream gets them. */

import type { Env } from '../context.js';
import type { Line, Span, Style } from '../outcome.js';
import { sanitize, sanitizeLine } from './terminal-text.js';

export interface Paint {
  /** Renders a span. Newlines, tabs and escapes become `\n`, `\t`, `\x1b`. */
  span(span: Span): string;
  /** Renders a line; tabs become spaces. */
  line(line: Line): string;
}

type Looks = Readonly<Record<Style, (text: string) => string>>;

const same = (text: string): string => text;
const NO_LOOKS: Looks = { strong: same, dim: same, good: same, bad: same, warn: same, accent: same };

/** Creates a paint. Loads the colour library only if it is needed. */
export async function loadPaint(color: boolean): Promise<Paint> {
  const looks = color ? await loadLooks() : NO_LOOKS;
  const paint = (span: Span, clean: (text: string) => string) =>
    typeof span === 'string' ? clean(span) : looks[span.style](clean(span.text));
  return {
    span: (span) => paint(span, sanitize),
    line: (line) =>
      spansOf(line)
        .map((span) => paint(span, sanitizeLine))
        .join(''),
  };
}

/** Defines the colour of each style. */
async function loadLooks(): Promise<Looks> {
  const { Chalk } = await import('chalk');
  const chalk = new Chalk({ level: 1 });
  return {
    strong: chalk.bold,
    dim: chalk.dim,
    good: chalk.green,
    bad: chalk.red,
    warn: chalk.yellow,
    accent: chalk.cyan,
  };
}

export const spansOf = (line: Line): readonly Span[] => (isSpans(line) ? line : [line]);

/** Returns the text of a span or line without styles. */
export const plainText = (line: Line): string => (isSpans(line) ? line.map(textOf).join('') : textOf(line));

const textOf = (span: Span): string => (typeof span === 'string' ? span : span.text);

const isSpans = (line: Line): line is readonly Span[] => Array.isArray(line);

/**
 * Returns whether a stream gets colours. Checks `--no-color`, then `FORCE_COLOR` and `CLICOLOR_FORCE`, then `NO_COLOR` and
 * `CLICOLOR=0`, then whether the stream is a terminal that supports colours.
 */
export function wantsColor(env: Env, noColor: boolean, isTerminal: boolean): boolean {
  if (noColor) return false;
  const forced = env.FORCE_COLOR;
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  if (env.CLICOLOR_FORCE && env.CLICOLOR_FORCE !== '0') return true;
  if (env.NO_COLOR || env.CLICOLOR === '0') return false;
  return isTerminal && env.TERM !== 'dumb';
}
