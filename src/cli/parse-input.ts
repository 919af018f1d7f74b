/** Parses the words after a command with a commander parser that is built for this one command. */
import type { CommanderError } from 'commander';
import { Fault } from '../kernel/fault.js';
import { nearest } from '../language/nearest.js';
import type { Argument, Command, RawInput } from './define-command.js';
import { GLOBAL_OPTIONS } from './global-options.js';
import { flagOf, type Option, type Options } from './options.js';
import { tableOptions } from './table-options.js';

/**
 * Returns the words of each argument and option by key, global options included.
 * @throws Fault `usage` for unknown options, missing and surplus arguments
 */
export async function parseInput(path: string, command: Command, words: readonly string[]): Promise<RawInput> {
  const commander = await import('commander');
  const { yes, ...globals } = GLOBAL_OPTIONS;
  const options: Options = {
    ...globals,
    ...(command.consent ? { yes } : {}),
    ...(tableOptions(command.columns) ?? {}),
    ...command.options,
  };
  const parser = new commander.Command(path)
    .exitOverride()
    .helpOption(false)
    .configureOutput({ writeErr: () => {} });
  const dashedKey = Object.keys(command.args).find((key) => command.args[key]?.dashed);
  const dashes = dashedKey === undefined ? -1 : words.indexOf('--');
  const own = Object.values(command.args).filter(({ dashed }) => !dashed);
  for (const argument of own) parser.argument(argumentSyntax(argument));
  const keys: OptionKey[] = [];
  for (const [key, option] of Object.entries(options)) {
    const built = new commander.Option(flagSyntax(key, option));
    if (option.placeholder !== null) built.argParser(append);
    keys.push({ key, attribute: built.attributeName(), isNegative: built.negate });
    parser.addOption(built);
  }
  const parsed = withBareValues(dashes < 0 ? words : words.slice(0, dashes), options);
  try {
    parser.parse(parsed, { from: 'user' });
  } catch (error) {
    if (!(error instanceof commander.CommanderError)) throw error;
    const needsDashes = dashedKey !== undefined && dashes < 0;
    throw (
      (await foreignCommand(path, parser.args, own.length)) ??
      faultOf(error, { path, words: parsed, own, options, given: parser.args, needsDashes })
    );
  }
  const behind = dashedKey === undefined || dashes < 0 ? {} : { [dashedKey]: words.slice(dashes + 1) };
  return { ...argumentValues(command, parser.processedArgs), ...behind, ...optionValues(keys, parser.opts()) };
}

/** Returns the fault for the command of another tool, such as `orch agent list`; null if the surplus word is none of those. */
async function foreignCommand(path: string, given: readonly string[], expected: number): Promise<Fault | null> {
  const surplus = given[expected];
  if (expected > 0 || surplus === undefined) return null;
  const { foreignHint } = await import('./foreign-words.js');
  const hint = foreignHint([...path.split(' '), surplus]);
  return hint === null ? null : new Fault('usage', `"orch ${path}" has no command "${surplus}"`, { hint });
}

export function argumentSyntax({ placeholder, required, many, dashed }: Argument<unknown>): string {
  if (dashed) return `-- ${placeholder}...`;
  const name = many ? `${placeholder}...` : placeholder;
  return required ? `<${name}>` : `[${name}]`;
}

/** Returns the flags of an option in commander's syntax, such as `-o, --output <FORMAT>`. */
function flagSyntax(key: string, option: Option<unknown>): string {
  const flags = [option.short === null ? [] : [`-${option.short}`], flagOf(key, option)].flat().join(', ');
  return option.placeholder === null ? flags : `${flags} <${option.placeholder}>`;
}

function append(value: string, before: unknown): readonly string[] {
  return [...(Array.isArray(before) ? before : []), value];
}

function argumentValues(command: Command, values: readonly unknown[]): RawInput {
  return Object.fromEntries(Object.keys(command.args).map((key, index) => [key, texts(values[index])]));
}

/** Returns the words in which each bare `--wait` has its value. The value must be joined, because an argument may follow. */
function withBareValues(words: readonly string[], options: Options): readonly string[] {
  const bare = new Map(
    Object.entries(options).flatMap(([key, option]) =>
      option.bare === null ? [] : [[flagOf(key, option), option.bare]],
    ),
  );
  return words.map((word) => (bare.has(word) ? `${word}=${bare.get(word)}` : word));
}

interface OptionKey {
  readonly key: string;
  /** Name under which commander keeps the value. `--color` and `--no-color` share one. */
  readonly attribute: string;
  readonly isNegative: boolean;
}

function optionValues(keys: readonly OptionKey[], found: Readonly<Record<string, unknown>>): RawInput {
  const values = keys.flatMap(({ key, attribute, isNegative }): [string, readonly string[]][] => {
    if (!Object.hasOwn(found, attribute)) return [];
    const value = found[attribute];
    // commander gives false for a `--no-` switch and true for its absence.
    if (isNegative) return [[key, value === false ? ['true'] : []]];
    return [[key, value === true ? ['true'] : texts(value)]];
  });
  return Object.fromEntries(values);
}

const texts = (value: unknown): readonly string[] => {
  if (Array.isArray(value)) return value.filter((item) => typeof item === 'string');
  return typeof value === 'string' ? [value] : [];
};

/** A rejected command line. */
interface Rejected {
  readonly path: string;
  /** Words after the command, up to `--`. */
  readonly words: readonly string[];
  /** Positional arguments of the command. */
  readonly own: readonly Argument<unknown>[];
  readonly options: Options;
  /** Positional words, then the words from the first unknown option on. */
  readonly given: readonly string[];
  /** True if the command takes words after `--` and has none. */
  readonly needsDashes: boolean;
}

/** Words that commander takes as values even though they start with a dash. */
const NEGATIVE_NUMBER = /^-(\d+|\d*\.\d+)(e[+-]?\d+)?$/;

/** Returns the `usage` fault for commander's error code; rethrows errors that this parser cannot cause. */
function faultOf(error: CommanderError, { path, words, own, options, given, needsDashes }: Rejected): Fault {
  switch (error.code) {
    case 'commander.missingArgument':
      return wrongUsage(path, `missing required argument '${own[given.length]?.placeholder ?? ''}'`);
    case 'commander.excessArguments': {
      const expected = `${own.length} argument${own.length === 1 ? '' : 's'}`;
      return wrongUsage(path, `too many arguments. Expected ${expected} but got ${given.length}.`);
    }
    case 'commander.optionMissingArgument':
      // Only the last word can lack its value.
      return wrongUsage(path, `option '${syntaxOf(words.at(-1) ?? '', options)}' argument missing`);
    case 'commander.unknownOption': {
      const option = given.find((word) => word.startsWith('-') && word !== '-' && !NEGATIVE_NUMBER.test(word)) ?? '';
      if (needsDashes) return withoutDashes(path, option, words);
      const flags = Object.entries(options).map(([key, one]) => flagOf(key, one));
      return wrongUsage(path, `unknown option '${option}'`, option.startsWith('--') ? nearest(option, flags) : null);
    }
    default:
      throw error;
  }
}

/** Returns the syntax of the option that a word names, such as `-o, --output <FORMAT>`; a word may combine short flags. */
function syntaxOf(word: string, options: Options): string {
  for (const [key, option] of Object.entries(options)) {
    const isShort = option.short !== null && !word.startsWith('--') && word.endsWith(option.short);
    if (option.placeholder !== null && (isShort || word === flagOf(key, option))) return flagSyntax(key, option);
  }
  return word;
}

/** The unknown option most likely belongs to the other program, because no `--` tells where its words start. */
function withoutDashes(path: string, option: string, words: readonly string[]): Fault {
  const at = words.indexOf(option);
  const [first, ...others] = words.slice(0, Math.max(at, 0));
  const isPlain = first !== undefined && others.length > 0 && !first.startsWith('-');
  const guess = isPlain ? `${first} -- ${[...others, ...words.slice(at)].join(' ')}` : 'NODE -- COMMAND';
  return new Fault('usage', `"orch ${path}" has no option ${option}, and its command goes after "--"`, {
    hint: `orch ${path} ${guess}`,
  });
}

function wrongUsage(path: string, what: string, meant: string | null = null): Fault {
  const see = `see: orch ${path} --help`;
  return new Fault('usage', `"orch ${path}": ${what}`, {
    hint: meant === null ? see : `did you mean ${meant}? (${see})`,
  });
}
