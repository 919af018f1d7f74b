/** A command: its arguments and options as data for parsing, help and completion, and a handler that returns data or throws a Fault. */
import { Fault } from '../kernel/fault.js';
import type { Context } from './context.js';
import type { ExtraFormat } from './options.js';
import { flagOf, type LiveValue, type Option, type Options } from './options.js';
import type { Column, Outcomes } from './outcome.js';

type ValueOf<S> = S extends Argument<infer T> ? T : S extends Option<infer T> ? T : never;
type Values<A extends Arguments, O extends Options> = { readonly [K in keyof A]: ValueOf<A[K]> } & {
  readonly [K in keyof O]: ValueOf<O[K]>;
};

/** The words of each argument and option by key, as typed. */
export type RawInput = Readonly<Record<string, readonly string[]>>;

/** Who may use a command: `local` ones need no orchestrator, `public` ones no operator, and `enroll` an admin or a grant of it. */
export type CommandAccess = 'local' | 'public' | 'viewer' | 'operator' | 'enroll' | 'admin';

interface CommandSpec<A extends Arguments, O extends Options> {
  /** Whole command lines, the most typical one first. The help begins with them. */
  readonly examples: readonly [string, ...string[]];
  /** Text of the help after the options. A line that does not end a sentence continues in the next one; the summary stands in the index. */
  readonly detail?: readonly string[];
  /** Arguments in the order of the command line. */
  readonly args?: A;
  readonly options?: O;
  /** Role that the orchestrator requires; `local` for commands that need no orchestrator. */
  readonly access: CommandAccess;
  /** True if it takes the options that choose an orchestrator [true unless `local`]. */
  readonly connection?: boolean;
  /** True if it asks for consent and takes `--yes`. */
  readonly consent?: boolean;
  /** True if it handles SIGINT and SIGTERM itself. */
  readonly ownsSignals?: boolean;
  /** Columns of the table that it prints, for `--sort` and `--columns`. */
  readonly columns?: readonly Column[];
  /** Output formats beside the common ones. */
  readonly formats?: readonly ExtraFormat[];
  /** Exit status when orch itself fails, to tell that from the status of the program it runs. Wrong usage keeps 64. */
  readonly failureStatus?: number;
  /** Rewrites the words before they are parsed, for callers with a convention of their own. Throws `usage`. */
  readonly rewrite?: (words: readonly string[]) => readonly string[];
  run(context: Context, input: Values<A, O>): Promise<Outcomes>;
}

export interface Command {
  readonly examples: readonly [string, ...string[]];
  readonly detail: readonly string[];
  readonly args: Arguments;
  readonly options: Options;
  readonly access: CommandAccess;
  readonly connection: boolean;
  readonly consent: boolean;
  readonly ownsSignals: boolean;
  readonly columns: readonly Column[];
  readonly formats: readonly ExtraFormat[];
  readonly failureStatus: number | null;
  /** Rewrites the words before they are parsed. */
  readonly rewrite: (words: readonly string[]) => readonly string[];
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
    columns = [],
    formats = [],
    failureStatus = null,
    rewrite = (words) => words,
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
    columns,
    formats,
    failureStatus,
    rewrite,
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
