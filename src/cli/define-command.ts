/** A command: its arguments and options as data for parsing, help and completion, and a handler that returns data or throws a Fault. */
import type { Access } from '../contract/route.js';
import { Fault } from '../kernel/fault.js';
import type { Context } from './context.js';
import type { ExtraFormat } from './global-options.js';
import type { Outcomes } from './outcome.js';

type ValueOf<S> = S extends Argument<infer T> ? T : S extends Option<infer T> ? T : never;
type Values<A extends Arguments, O extends Options> = { readonly [K in keyof A]: ValueOf<A[K]> } & {
  readonly [K in keyof O]: ValueOf<O[K]>;
};

/** The words of each argument and option by key, as typed. */
export type RawInput = Readonly<Record<string, readonly string[]>>;

interface CommandSpec<A extends Arguments, O extends Options> {
  /** Whole command lines, the most typical one first. The help begins with them. */
  readonly examples: readonly [string, ...string[]];
  /** Lines of the help after the options; the summary stands in the index. */
  readonly detail?: readonly string[];
  /** Arguments in the order of the command line. */
  readonly args?: A;
  readonly options?: O;
  /** Role that the orchestrator requires; `local` for commands that need no orchestrator. */
  readonly access: Access | 'local';
  /** True if it takes the options that choose an orchestrator [true unless `local`]. */
  readonly connection?: boolean;
  /** True if it asks for consent and takes `--yes`. */
  readonly consent?: boolean;
  /** True if it handles SIGINT and SIGTERM itself. */
  readonly ownsSignals?: boolean;
  /** Output formats beside the common ones. */
  readonly formats?: readonly ExtraFormat[];
  /** Exit status when orch itself fails, to tell that from the status of the program it runs. Wrong usage keeps 64. */
  readonly failureStatus?: number;
  run(context: Context, input: Values<A, O>): Promise<Outcomes>;
}

export interface Command {
  readonly examples: readonly [string, ...string[]];
  readonly detail: readonly string[];
  readonly args: Arguments;
  readonly options: Options;
  readonly access: Access | 'local';
  readonly connection: boolean;
  readonly consent: boolean;
  readonly ownsSignals: boolean;
  readonly formats: readonly ExtraFormat[];
  readonly failureStatus: number | null;
  /** Parses the values and runs the handler. Throws `usage` for an invalid value. */
  execute(context: Context, raw: RawInput): Promise<Outcomes>;
}

export function defineCommand<
  const A extends Arguments = Record<never, never>,
  const O extends Options = Record<never, never>,
>(spec: CommandSpec<A, O>): Command {
  const {
    examples,
    detail = [],
    access,
    consent = false,
    ownsSignals = false,
    formats = [],
    failureStatus = null,
  } = spec;
  const connection = spec.connection ?? access !== 'local';
  const args: Arguments = spec.args ?? {};
  const options: Options = spec.options ?? {};
  return {
    examples,
    detail,
    args,
    options,
    access,
    connection,
    consent,
    ownsSignals,
    formats,
    failureStatus,
    execute: async (context, raw) => spec.run(context, readInput<A, O>(args, options, raw)),
  };
}

function readInput<A extends Arguments, O extends Options>(
  args: Arguments,
  options: Options,
  raw: RawInput,
): Values<A, O> {
  const values: [string, unknown][] = [];
  for (const [key, argument] of Object.entries(args)) values.push([key, argument.parse(raw[key] ?? [])]);
  for (const [key, option] of Object.entries(options)) {
    values.push([key, option.parse(raw[key] ?? [], flagOf(key, option))]);
  }
  // `Object.fromEntries` loses the type of each key; the loops above give each key the type of its spec.
  return Object.fromEntries(values) as Values<A, O>;
}

/** The positional arguments of a command as data. */
export interface Argument<T> {
  readonly placeholder: string;
  readonly summary: string;
  readonly required: boolean;
  readonly many: boolean;
  /** Takes every word after `--`, options included. */
  readonly dashed?: true;
  readonly completes: LiveValue | null;
  /** Words that completion offers. */
  readonly choices?: readonly string[];
  /** Returns the value. `given` is empty for an absent optional argument; commander rejects a missing required one. */
  parse(given: readonly string[]): T;
}

type Arguments = Readonly<Record<string, Argument<unknown>>>;

/** Rejects empty words: most likely an unset shell variable. Throws `usage`. */
function notEmpty(placeholder: string, given: readonly string[]): readonly string[] {
  if (given.includes('')) {
    throw new Fault('usage', `${placeholder} is empty`, { hint: 'is it an unset variable?' });
  }
  return given;
}

/** Makes an argument that takes exactly one word. */
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

/** Makes an argument that takes one word or none. */
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

/** Makes an argument that takes one word or more. Must be the last one. */
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

/** Makes an argument that takes everything after `--`, such as another program's command line. Must be the last one. */
export const dashedList = (placeholder: string, summary: string): Argument<readonly string[]> => ({
  ...argumentList(placeholder, summary),
  required: false,
  dashed: true,
  parse: (given) => given,
});

/** Makes an argument that takes any number of words. Must be the last one, except for a dashed list. */
export const optionalList = (
  placeholder: string,
  summary: string,
  completes: LiveValue | null = null,
): Argument<readonly string[]> => ({ ...argumentList(placeholder, summary, completes), required: false });

/** Kinds of values that completion looks up: on the orchestrator, in the profiles, or on disk. */
export type LiveValue =
  | 'node'
  | 'tag'
  | 'selector'
  | 'module'
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
