/** The options of a command as data, with the type that each one gives. */
import { Fault } from '../kernel/fault.js';
import type { LiveValue } from './live-value.js';

export interface Option<T> {
  readonly summary: string;
  /** One letter, without the dash. */
  readonly short: string | null;
  /** Name of the value in the help; null for a switch. */
  readonly placeholder: string | null;
  readonly many: boolean;
  readonly required: boolean;
  readonly choices: readonly string[] | null;
  readonly completes: LiveValue | null;
  /** The switch is spelled `--no-NAME` and turns something off. */
  readonly negative: boolean;
  /** `given` holds every value in order, `['true']` for a switch, nothing when the option is absent. Throws `usage`. */
  parse(given: readonly string[], flag: string): T;
}

export type Options = Readonly<Record<string, Option<unknown>>>;

interface Extra {
  readonly short?: string;
  readonly completes?: LiveValue;
}

const option = <T>(fields: Pick<Option<T>, 'summary' | 'parse'> & Partial<Option<T>>): Option<T> => ({
  short: null,
  placeholder: null,
  many: false,
  required: false,
  choices: null,
  completes: null,
  negative: false,
  ...fields,
});

/** A switch: present or not. */
export const flag = (summary: string, extra: Extra = {}): Option<boolean> =>
  option({ summary, ...extra, parse: (given) => given.length > 0 });

/** A switch `--no-NAME`: true when it was given. */
export const negativeFlag = (summary: string): Option<boolean> =>
  option({ summary, negative: true, parse: (given) => given.length > 0 });

/** Any text; the last one counts. */
export const text = (placeholder: string, summary: string, extra: Extra = {}): Option<string | undefined> =>
  option({ summary, placeholder, ...extra, parse: (given) => given.at(-1) });

/** Text that has to be there. */
export const requiredText = (placeholder: string, summary: string, extra: Extra = {}): Option<string> =>
  option({
    summary,
    placeholder,
    required: true,
    ...extra,
    parse: (given, name) => {
      const value = given.at(-1);
      if (value === undefined) throw new Fault('usage', `${name} ${placeholder} is missing`);
      return value;
    },
  });

/** One of a few words. */
export const choice = <const C extends string>(
  placeholder: string,
  choices: readonly C[],
  summary: string,
  extra: Extra = {},
): Option<C | undefined> =>
  option({
    summary,
    placeholder,
    choices,
    ...extra,
    parse: (given, name) => {
      const value = given.at(-1);
      if (value === undefined) return undefined;
      const known = choices.find((candidate) => candidate === value);
      if (known === undefined) {
        throw new Fault('usage', `${name} takes ${listWords(choices)}, not "${value}"`);
      }
      return known;
    },
  });

/** A whole number of at least `minimum`. */
export const integer = (placeholder: string, summary: string, minimum = 0): Option<number | undefined> =>
  option({
    summary,
    placeholder,
    parse: (given, name) => {
      const value = given.at(-1);
      if (value === undefined) return undefined;
      const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
      if (!(number >= minimum)) {
        throw new Fault('usage', `${name} takes a whole number of at least ${minimum}, not "${value}"`);
      }
      return number;
    },
  });

/** Text that may be given several times. */
export const list = (placeholder: string, summary: string, extra: Extra = {}): Option<readonly string[]> =>
  option({ summary, placeholder, many: true, ...extra, parse: (given) => given });

/** The flag of an option's key: `allowRemovals` and `allow_removals` are both `--allow-removals`. */
export function flagOf(key: string, { negative }: Pick<Option<unknown>, 'negative'> = { negative: false }): string {
  const name = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`).replaceAll('_', '-');
  return negative ? `--no-${name}` : `--${name}`;
}

/** `a, b or c`. */
export const listWords = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
