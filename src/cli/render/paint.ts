/** Turns spans into sanitised text for one stream, with colours where the stream gets them. */

import type { Env } from '../env.js';
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
const NO_LOOKS: Looks = { strong: same, dim: same, good: same, bad: same, warn: same, accent: same, selected: same };

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
    selected: chalk.inverse,
  };
}

export const spansOf = (line: Line): readonly Span[] => (isSpans(line) ? line : [line]);

/** Returns the text of a span or line without styles. */
export const plainText = (line: Line): string => (isSpans(line) ? line.map(textOf).join('') : textOf(line));

const textOf = (span: Span): string => (typeof span === 'string' ? span : span.text);

const isSpans = (line: Line): line is readonly Span[] => Array.isArray(line);

/**
 * Returns whether a stream gets colours, and what decided: `--color` and `--no-color` (`wanted`), then `NO_COLOR`, then
 * `CLICOLOR_FORCE` and `FORCE_COLOR`, then `CLICOLOR=0`, then whether the stream is a terminal that supports colours.
 */
export function colorChoice(
  env: Env,
  wanted: boolean | null,
  isTerminal: boolean,
): { readonly isOn: boolean; readonly from: string } {
  if (wanted !== null) return { isOn: wanted, from: wanted ? '--color' : '--no-color' };
  if (env.NO_COLOR) return { isOn: false, from: 'NO_COLOR' };
  if (env.CLICOLOR_FORCE && env.CLICOLOR_FORCE !== '0') return { isOn: true, from: 'CLICOLOR_FORCE' };
  if (env.FORCE_COLOR !== undefined) {
    return { isOn: env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false', from: 'FORCE_COLOR' };
  }
  if (env.CLICOLOR === '0') return { isOn: false, from: 'CLICOLOR' };
  return { isOn: isTerminal && env.TERM !== 'dumb', from: 'default' };
}

export const wantsColor = (env: Env, wanted: boolean | null, isTerminal: boolean): boolean =>
  colorChoice(env, wanted, isTerminal).isOn;
