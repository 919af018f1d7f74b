/** A command: data for parsing, help and completion, and one short handler that returns data or throws a Fault. */
import type { Access } from '../contract/route.js';
import { Fault } from '../kernel/fault.js';
import type { Context } from './context.js';
import type { ExtraFormat } from './global-options.js';
import type { Outcomes } from './outcome.js';

type ValueOf<S> = S extends Argument<infer T> ? T : S extends Option<infer T> ? T : never;
type Values<A extends Arguments, O extends Options> = { readonly [K in keyof A]: ValueOf<A[K]> } & {
  readonly [K in keyof O]: ValueOf<O[K]>;
};

/** Every value by key, as typed. */
export type RawInput = Readonly<Record<string, readonly string[]>>;

export interface CommandSpec<A extends Arguments, O extends Options> {
  /** Whole command lines, the most typical one first: the help begins with them. */
  readonly examples: readonly [string, ...string[]];
  /** Paragraphs for the help, beyond the summary in the index. */
  readonly detail?: readonly string[];
  /** In the order of the command line. */
  readonly args?: A;
  readonly options?: O;
  /** The role that the orchestrator asks for; `local` commands talk to no orchestrator. */
  readonly access: Access | 'local';
  /** It takes the options that say which orchestrator; absent, every command does that is not `local`. */
  readonly connection?: boolean;
  /** It asks before it acts, and takes `--yes`. */
  readonly consent?: boolean;
  /** It handles SIGINT and SIGTERM itself. */
  readonly ownsSignals?: boolean;
  /** Output formats beside those of every command. */
  readonly formats?: readonly ExtraFormat[];
  /** How it ends when it fails itself, so that this is told from how the program ends that it runs; wrong usage keeps its own. */
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
  /** Checks the input against the data, then runs. Throws `usage` for a value that does not fit. */
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
  // The types of the values are those of the specs by key, which an object made of entries cannot say.
  return Object.fromEntries(values) as Values<A, O>;
}

/** The positional arguments of a command as data. */
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

/** Values that completion asks the orchestrator, or the disk, for. */
export type LiveValue =
  | 'node'
  | 'module'
  | 'assignment'
  | 'operator'
  | 'secret'
  | 'operation'
  | 'drift'
  | 'window'
  | 'channel'
  | 'notification'
  | 'terminal'
  | 'profile'
  | 'file';

/** The options of a command as data, with the type that each one gives. */
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
