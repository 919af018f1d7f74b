/** The options that every command takes. */

import { Fault } from '../kernel/fault.js';
import { API_PORT } from '../kernel/ports.js';
import { type ExtraFormat, flag, flagOf, listWords, negativeFlag, type Option, type Options, text } from './options.js';
import type { Column } from './outcome.js';
import { type Arrangement, tableOptions } from './table-options.js';

const OUTPUT_FORMATS = ['table', 'json', 'yaml', 'wide', 'name'] as const;
const JSONPATH = 'jsonpath=';

type OutputFormat = (typeof OUTPUT_FORMATS)[number] | 'jsonpath' | ExtraFormat;

interface Output {
  readonly format: OutputFormat;
  /** Expression of `-o jsonpath=EXPR`. */
  readonly expression: string | null;
}

function outputOption(extra: readonly ExtraFormat[]): Option<Output | undefined> {
  const formats: readonly Exclude<OutputFormat, 'jsonpath'>[] = [...OUTPUT_FORMATS, ...extra];
  return {
    summary: 'output format (see: orch help output)',
    short: 'o',
    placeholder: 'FORMAT',
    many: false,
    required: false,
    choices: [...formats, JSONPATH],
    completes: null,
    negative: false,
    bare: null,
    parse: (given, name) => {
      const value = given.at(-1);
      if (value === undefined) return undefined;
      if (value.startsWith(JSONPATH)) return { format: 'jsonpath', expression: value.slice(JSONPATH.length) };
      const format = formats.find((candidate) => candidate === value);
      if (format !== undefined) return { format, expression: null };
      throw new Fault('usage', `${name} takes ${listWords([...formats, `${JSONPATH}EXPR`])}, not "${value}"`, {
        hint: value === 'jsonpath' ? "such as -o jsonpath='$[*].name'" : 'see: orch help output',
      });
    },
  };
}

/** Options of every command. */
export const OUTPUT_OPTIONS = {
  output: outputOption([]),
  json: flag('the same as -o json'),
  quiet: flag('print only errors and the answer: the names or IDs alone, unless -o says otherwise', { short: 'q' }),
  color: flag('colours even without a terminal'),
  noColor: flag('no colours'),
  pager: negativeFlag('print long output at once, without the pager'),
  verbose: flag('print more: unchanged resources, request IDs', { short: 'v' }),
} as const satisfies Options;

/** Options of commands that talk to an orchestrator. Other commands accept and ignore them. */
export const CONNECTION_OPTIONS = {
  url: text('URL', `URL of the orchestrator, such as https://host:${API_PORT}`),
  profile: text('NAME', 'profile of the orchestrator', { completes: 'profile' }),
  tlsFingerprint: text('HEX', "SHA-256 of the SPKI of the orchestrator's TLS certificate"),
  ca: text('FILE', 'certificate authority to trust (PEM)', { completes: 'file' }),
  keyFile: text('FILE', "your operator's private key", { completes: 'file' }),
  sshAgent: {
    ...text('KEY', 'log in with your ssh-agent: its only Ed25519 key, or that with this public key or comment'),
    bare: '',
  },
  allowUnboundLogin: flag('allow a login that is not bound to the certificate of the server'),
} as const satisfies Options;

/** Options of commands that ask for consent. */
export const CONSENT_OPTIONS = {
  yes: flag('skip the question', { short: 'y' }),
} as const satisfies Options;

export const GLOBAL_OPTIONS = { ...OUTPUT_OPTIONS, ...CONNECTION_OPTIONS, ...CONSENT_OPTIONS } as const;

/** Returns the common options of a command, for help and completion. */
export const optionsBeside = (command: {
  readonly connection: boolean;
  readonly consent: boolean;
  readonly columns?: readonly Column[];
  readonly formats?: readonly ExtraFormat[];
}): Options => ({
  ...(command.consent ? CONSENT_OPTIONS : {}),
  ...(tableOptions(command.columns ?? []) ?? {}),
  ...OUTPUT_OPTIONS,
  output: outputOption(command.formats ?? []),
  ...(command.connection ? CONNECTION_OPTIONS : {}),
});

/** Values of the global options. */
export interface Globals {
  readonly output: OutputFormat;
  /** Flag that chose the format; null for the default. */
  readonly outputFrom: '--json' | '--output' | '--quiet' | null;
  /** Expression of `-o jsonpath=EXPR`; null for other formats. */
  readonly expression: string | null;
  readonly quiet: boolean;
  /** Null without `--color` and `--no-color`. */
  readonly color: boolean | null;
  readonly noPager: boolean;
  readonly verbose: boolean;
  readonly yes: boolean;
  readonly url: string | undefined;
  readonly profile: string | undefined;
  readonly tlsFingerprint: string | undefined;
  readonly ca: string | undefined;
  readonly keyFile: string | undefined;
  /** Empty for the only key of the ssh-agent. */
  readonly sshAgent: string | undefined;
  readonly allowUnboundLogin: boolean;
  /** How the operator wants the table of the command; null for the usual way. */
  readonly arrangement: Arrangement | null;
}

/** Parses the global options, and those of the table of a command. Throws `usage`. */
export function readGlobals(
  raw: Readonly<Record<string, readonly string[]>>,
  {
    formats = [],
    columns = [],
  }: { readonly formats?: readonly ExtraFormat[]; readonly columns?: readonly Column[] } = {},
): Globals {
  const given = (key: keyof typeof GLOBAL_OPTIONS) => raw[key] ?? [];
  const output = outputOption(formats);
  const { output: _, json, quiet, color, noColor, pager, verbose, yes, allowUnboundLogin, ...texts } = GLOBAL_OPTIONS;
  const isQuiet = quiet.parse(given('quiet'), '--quiet');
  const chosen = output.parse(given('output'), '--output');
  const isJson = json.parse(given('json'), '--json');
  const format = isJson ? 'json' : (chosen?.format ?? (isQuiet ? 'name' : 'table'));
  return {
    output: format,
    outputFrom: isJson ? '--json' : chosen !== undefined ? '--output' : isQuiet ? '--quiet' : null,
    expression: isJson ? null : (chosen?.expression ?? null),
    quiet: isQuiet,
    color: noColor.parse(given('noColor'), '--no-color') ? false : color.parse(given('color'), '--color') || null,
    noPager: pager.parse(given('pager'), '--no-pager'),
    verbose: verbose.parse(given('verbose'), '--verbose'),
    yes: yes.parse(given('yes'), '--yes'),
    url: texts.url.parse(given('url'), '--url'),
    profile: texts.profile.parse(given('profile'), '--profile'),
    tlsFingerprint: texts.tlsFingerprint.parse(given('tlsFingerprint'), '--tls-fingerprint'),
    ca: texts.ca.parse(given('ca'), '--ca'),
    keyFile: texts.keyFile.parse(given('keyFile'), '--key-file'),
    sshAgent: texts.sshAgent.parse(given('sshAgent'), '--ssh-agent'),
    allowUnboundLogin: allowUnboundLogin.parse(given('allowUnboundLogin'), '--allow-unbound-login'),
    arrangement: readArrangement(raw, { columns, format }),
  };
}

/** Throws `usage`. */
function readArrangement(
  raw: Readonly<Record<string, readonly string[]>>,
  { columns, format }: { readonly columns: readonly Column[]; readonly format: OutputFormat },
): Arrangement | null {
  const options = tableOptions(columns);
  if (options === null) return null;
  const sort = options.sort.parse(raw.sort ?? [], '--sort');
  const shown = options.columns.parse(raw.columns ?? [], '--columns');
  if (sort === null && shown.length === 0) return null;
  const isArranged = format === 'table' || format === 'wide' || (format === 'name' && shown.length === 0);
  if (!isArranged) {
    const [flag] = [...(shown.length > 0 ? ['--columns'] : []), '--sort'];
    throw new Fault('usage', `${flag} arranges tables, so it does not go with -o ${format}`);
  }
  return { sort, columns: shown.length === 0 ? null : shown };
}

/** Returns whether a table shows columns that are otherwise left out, so that their cells have to be made. */
export const showsWideColumns = ({ output, arrangement }: Pick<Globals, 'output' | 'arrangement'>): boolean =>
  output === 'wide' || (arrangement !== null && (arrangement.columns !== null || arrangement.sort !== null));

/** Returns how many words a global option takes, 1 or 2; 0 if the word is not one. */
export function globalOptionLength(word: string): 0 | 1 | 2 {
  for (const [key, option] of Object.entries(GLOBAL_OPTIONS)) {
    const long = flagOf(key, option);
    const short = option.short === null ? null : `-${option.short}`;
    if (word === long || word === short) return option.placeholder === null || option.bare !== null ? 1 : 2;
    if (option.placeholder !== null && (word.startsWith(`${long}=`) || (short && word.startsWith(short)))) return 1;
  }
  return ['-h', '--help', '-V', '--version'].includes(word) ? 1 : 0;
}

/** Guesses the output options of a command line that is not, or cannot be, parsed. Never throws. */
export function guessGlobals(argv: readonly string[]): Globals {
  const end = argv.indexOf('--');
  const words = end < 0 ? argv : argv.slice(0, end);
  const named = words.flatMap((word, index) => {
    if (word === '-o' || word === '--output') return [words[index + 1] ?? ''];
    return /^(?:-o|--output=)(.+)$/.exec(word)?.slice(1) ?? [];
  });
  const output = words.includes('--json') ? 'json' : named.at(-1);
  const known = OUTPUT_FORMATS.find((format) => format === output);
  const has = (...spellings: readonly string[]) => (words.some((word) => spellings.includes(word)) ? ['true'] : []);
  return readGlobals({
    output: known === undefined ? [] : [known],
    quiet: has('-q', '--quiet'),
    color: has('--color'),
    noColor: has('--no-color'),
    pager: has('--no-pager'),
    verbose: has('-v', '--verbose'),
  });
}

/** Returns whether the output is for programs, so that notes would only disturb. */
export const isForPrograms = ({ output }: Pick<Globals, 'output'>): boolean =>
  output === 'json' || output === 'yaml' || output === 'jsonpath';
