/** The options of commands as data: what each takes, and the value that it gives. */
import { Fault } from '../kernel/fault.js';

/** Kinds of values that completion looks up: on the orchestrator, in the profiles, or on disk. */
export type LiveValue =
  | 'node'
  | 'tag'
  | 'selector'
  | 'module'
  | 'values'
  | 'assignment'
  | 'operator'
  | 'secret'
  | 'operation'
  | 'rollout'
  | 'operation-of-node'
  | 'drift'
  | 'snooze'
  | 'window'
  | 'channel'
  | 'notification'
  | 'terminal'
  | 'profile'
  | 'command-or-topic'
  | 'file';

/** The options of a command as data, with the type that each one gives. */
export interface Option<T> {
  readonly summary: string;
  /** Short flag: one letter without the dash. */
  readonly short: string | null;
  /** Placeholder of the value in the help; null for a switch. */
  readonly placeholder: string | null;
  readonly many: boolean;
  readonly required: boolean;
  readonly choices: readonly string[] | null;
  readonly completes: LiveValue | null;
  /** True if the switch is spelled `--no-NAME`. */
  readonly negative: boolean;
  /** Value of the option without one: `--wait` is `--wait=BARE`. Null if the option needs its value. */
  readonly bare: string | null;
  /** Returns the value. `given` holds each value in order, `['true']` for a switch, nothing if absent. Throws `usage`. */
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
  bare: null,
  ...fields,
});

/** Makes a switch: true if present. */
export const flag = (summary: string, extra: Extra = {}): Option<boolean> =>
  option({ summary, ...extra, parse: (given) => given.length > 0 });

/** Makes a switch `--no-NAME`: true if present. */
export const negativeFlag = (summary: string): Option<boolean> =>
  option({ summary, negative: true, parse: (given) => given.length > 0 });

/** Makes an option that takes a text; the last one counts. */
export const text = (placeholder: string, summary: string, extra: Extra = {}): Option<string | undefined> =>
  option({ summary, placeholder, ...extra, parse: (given) => given.at(-1) });

/** Makes an option that requires a text. */
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

/** Makes an option that takes one of a few words. */
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

/** Makes an option that takes several of a few words, between commas or repeated. */
export const choices = <const C extends string>(
  placeholder: string,
  words: readonly C[],
  summary: string,
): Option<readonly C[]> =>
  option({
    summary,
    placeholder,
    choices: words,
    many: true,
    parse: (given, name) => {
      const parts = given.flatMap((value) => value.split(',')).map((part) => part.trim());
      return [...new Set(parts)].map((part) => {
        const known = words.find((candidate) => candidate === part);
        if (known !== undefined) return known;
        throw new Fault('usage', `${name} takes ${listWords(words)}, not "${part}"`);
      });
    },
  });

/** Makes an option that takes a whole number of at least `minimum`. */
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

/** Makes an option that takes a number of agents of at least `minimum`, or a share of them such as `10%`. */
export const share = (placeholder: string, summary: string, minimum: number): Option<number | string | undefined> =>
  option({
    summary,
    placeholder,
    parse: (given, name) => {
      const value = given.at(-1);
      return value === undefined ? undefined : parseShare(value, name, minimum);
    },
  });

/** Makes an option that takes numbers and shares of agents between commas. */
export const listOfShares = (placeholder: string, summary: string): Option<readonly (number | string)[] | undefined> =>
  option({
    summary,
    placeholder,
    parse: (given, name) => {
      const value = given.at(-1);
      return value?.split(',').map((part) => parseShare(part.trim(), name, 1));
    },
  });

/** Throws `usage`. */
function parseShare(text: string, name: string, minimum: number): number | string {
  const [, digits, percent] = /^(\d{1,9})(%?)$/.exec(text) ?? [];
  const number = Number(digits);
  if (percent === '%' && number >= 1 && number <= 100) return `${number}%`;
  if (percent === '' && number >= minimum) return number;
  if (percent === '%') throw new Fault('usage', `${name} takes a share from 1% to 100%, not "${text}"`);
  throw new Fault(
    'usage',
    `${name} takes a number of agents of at least ${minimum}, or a share of them, not "${text}"`,
    {
      hint: name === '--waves' ? 'such as --waves 1,10%,100%' : `such as ${name} 2 or ${name} 10%`,
    },
  );
}

/** Makes an option that may be repeated. */
export const list = (placeholder: string, summary: string, extra: Extra = {}): Option<readonly string[]> =>
  option({ summary, placeholder, many: true, ...extra, parse: (given) => given });

/** Returns the flag of an option's key: `allowRemovals` and `allow_removals` both give `--allow-removals`. */
export function flagOf(key: string, { negative }: Pick<Option<unknown>, 'negative'> = { negative: false }): string {
  const name = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`).replaceAll('_', '-');
  return negative ? `--no-${name}` : `--${name}`;
}

/** Joins words as `a, b or c`. */
export const listWords = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

/** Formats of single commands: `dot` is Graphviz source. */
export type ExtraFormat = 'dot';
