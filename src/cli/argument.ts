/** The positional arguments of a command as data. */
import { Fault } from '../kernel/fault.js';
import type { LiveValue } from './live-value.js';

export interface Argument<T> {
  readonly placeholder: string;
  readonly summary: string;
  readonly required: boolean;
  readonly many: boolean;
  /** It is all that stands behind `--`, whatever it looks like. */
  readonly dashed?: true;
  readonly completes: LiveValue | null;
  /** `given` is empty when the argument is absent; commander has refused a required one that is. */
  parse(given: readonly string[]): T;
}

export type Arguments = Readonly<Record<string, Argument<unknown>>>;

/** An empty word is a shell variable that is not set, most probably, and the name of nothing. */
function notEmpty(placeholder: string, given: readonly string[]): readonly string[] {
  if (given.includes('')) {
    throw new Fault('usage', `${placeholder} is empty`, { hint: 'is a variable not set that stands there?' });
  }
  return given;
}

/** Exactly one. */
export const argument = (
  placeholder: string,
  summary: string,
  completes: LiveValue | null = null,
): Argument<string> => ({
  placeholder,
  summary,
  required: true,
  many: false,
  completes,
  parse: (given) => notEmpty(placeholder, given)[0] ?? '',
});

/** One or none. */
export const optionalArgument = (
  placeholder: string,
  summary: string,
  completes: LiveValue | null = null,
): Argument<string | undefined> => ({
  placeholder,
  summary,
  required: false,
  many: false,
  completes,
  parse: (given) => notEmpty(placeholder, given)[0],
});

/** One or more. Comes last. */
export const argumentList = (
  placeholder: string,
  summary: string,
  completes: LiveValue | null = null,
): Argument<readonly string[]> => ({
  placeholder,
  summary,
  required: true,
  many: true,
  completes,
  parse: (given) => notEmpty(placeholder, given),
});

/** Everything behind `--`, such as the words of another program's command line. Comes last. */
export const dashedList = (placeholder: string, summary: string): Argument<readonly string[]> => ({
  ...argumentList(placeholder, summary),
  required: false,
  dashed: true,
  parse: (given) => given,
});

/** Any number, none too. Comes last, but for what stands behind `--`. */
export const optionalList = (
  placeholder: string,
  summary: string,
  completes: LiveValue | null = null,
): Argument<readonly string[]> => ({ ...argumentList(placeholder, summary, completes), required: false });
