/** A command: data for parsing, help and completion, and one short handler that returns data or throws a Fault. */
import type { Access } from '../contract/route.js';
import type { Argument, Arguments } from './argument.js';
import type { Context } from './context.js';
import type { ExtraFormat } from './global-options.js';
import type { Option, Options } from './option.js';
import { flagOf } from './option.js';
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
