/** Parses the words after a command with a commander parser that is built for this one command. */
import { Fault } from '../kernel/fault.js';
import { type Argument, type Command, flagOf, type Options, type RawInput } from './define-command.js';
import { GLOBAL_OPTIONS } from './global-options.js';

/**
 * Returns the words of each argument and option by key, global options included.
 * @throws Fault `usage` for unknown options, missing and surplus arguments
 */
export async function parseInput(path: string, command: Command, words: readonly string[]): Promise<RawInput> {
  const commander = await import('commander');
  const { yes, ...globals } = GLOBAL_OPTIONS;
  const options: Options = { ...globals, ...(command.consent ? { yes } : {}), ...command.options };
  const parser = new commander.Command(path)
    .exitOverride()
    .helpOption(false)
    .configureOutput({ writeErr: () => {} });
  const dashedKey = Object.keys(command.args).find((key) => command.args[key]?.dashed);
  const dashes = dashedKey === undefined ? -1 : words.indexOf('--');
  const own = Object.values(command.args).filter(({ dashed }) => !dashed);
  for (const argument of own) parser.argument(argumentSyntax(argument));
  const keys = new Map<string, string>();
  for (const [key, option] of Object.entries(options)) {
    const flags = [option.short === null ? [] : [`-${option.short}`], flagOf(key, option)].flat().join(', ');
    const built = new commander.Option(option.placeholder === null ? flags : `${flags} <${option.placeholder}>`);
    if (option.placeholder !== null) built.argParser(append);
    keys.set(built.attributeName(), key);
    parser.addOption(built);
  }
  try {
    parser.parse(dashes < 0 ? [...words] : words.slice(0, dashes), { from: 'user' });
  } catch (error) {
    if (!(error instanceof commander.CommanderError)) throw error;
    const isUnmarked = dashedKey !== undefined && dashes < 0 && error.code === 'commander.unknownOption';
    throw isUnmarked ? unmarked(path, error.message, words) : wrongUsage(path, error.message);
  }
  const behind = dashedKey === undefined || dashes < 0 ? {} : { [dashedKey]: words.slice(dashes + 1) };
  return { ...argumentValues(command, parser.processedArgs), ...behind, ...optionValues(options, keys, parser.opts()) };
}

export function argumentSyntax({ placeholder, required, many, dashed }: Argument<unknown>): string {
  if (dashed) return `-- ${placeholder}...`;
  const name = many ? `${placeholder}...` : placeholder;
  return required ? `<${name}>` : `[${name}]`;
}

function append(value: string, before: unknown): readonly string[] {
  return [...(Array.isArray(before) ? before : []), value];
}

function argumentValues(command: Command, values: readonly unknown[]): RawInput {
  return Object.fromEntries(Object.keys(command.args).map((key, index) => [key, texts(values[index])]));
}

function optionValues(
  options: Options,
  keys: ReadonlyMap<string, string>,
  found: Readonly<Record<string, unknown>>,
): RawInput {
  const values: [string, readonly string[]][] = [];
  for (const [name, value] of Object.entries(found)) {
    const key = keys.get(name);
    const option = key === undefined ? undefined : options[key];
    if (key === undefined || option === undefined) continue;
    // commander gives false for a `--no-` switch and true for its absence.
    if (option.negative) values.push([key, value === false ? ['true'] : []]);
    else values.push([key, value === true ? ['true'] : texts(value)]);
  }
  return Object.fromEntries(values);
}

const texts = (value: unknown): readonly string[] => {
  if (Array.isArray(value)) return value.filter((item) => typeof item === 'string');
  return typeof value === 'string' ? [value] : [];
};

/** An unknown option is the other program's, most probably, when nothing says where its words begin. */
function unmarked(path: string, message: string, words: readonly string[]): Fault {
  const option = /'([^']+)'/.exec(message)?.[1] ?? '';
  const at = words.indexOf(option);
  const [first, ...others] = words.slice(0, Math.max(at, 0));
  const isPlain = first !== undefined && others.length > 0 && !first.startsWith('-');
  const guess = isPlain ? `${first} -- ${[...others, ...words.slice(at)].join(' ')}` : 'NODE -- COMMAND';
  return new Fault('usage', `"orch ${path}" has no option ${option}, and its command stands behind "--"`, {
    hint: `orch ${path} ${guess}`,
  });
}

function wrongUsage(path: string, message: string): Fault {
  const [what = '', suggestion] = message.replace(/^error: /, '').split('\n');
  const see = `see: orch ${path} --help`;
  const guess = suggestion?.replace(/^\((.*)\)$/, '$1');
  return new Fault('usage', `"orch ${path}": ${what}`, {
    hint: guess ? `${guess.charAt(0).toLowerCase()}${guess.slice(1)} (${see})` : see,
  });
}
