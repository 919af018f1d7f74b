/** The options that every command takes. */
import { API_PORT } from '../kernel/ports.js';
import { choice, flag, flagOf, negativeFlag, type Options, text } from './define-command.js';

const OUTPUT_FORMATS = ['table', 'json', 'yaml', 'wide', 'name'] as const;
/** Formats of single commands: `dot` is Graphviz source. */
export type ExtraFormat = 'dot';
type OutputFormat = (typeof OUTPUT_FORMATS)[number] | ExtraFormat;

const outputOption = (extra: readonly ExtraFormat[]) =>
  choice('FORMAT', [...OUTPUT_FORMATS, ...extra], 'output format (see: orch help output)', { short: 'o' });

/** Options of every command. */
export const OUTPUT_OPTIONS = {
  output: outputOption([]),
  json: flag('the same as -o json'),
  color: negativeFlag('no colours'),
  verbose: flag('print more: unchanged resources, request IDs', { short: 'v' }),
} as const satisfies Options;

/** Options of commands that talk to an orchestrator. Other commands accept and ignore them. */
export const CONNECTION_OPTIONS = {
  url: text('URL', `URL of the orchestrator, such as https://host:${API_PORT}`),
  profile: text('NAME', 'profile of the orchestrator', { completes: 'profile' }),
  tlsFingerprint: text('HEX', "SHA-256 of the SPKI of the orchestrator's TLS certificate"),
  ca: text('FILE', 'certificate authority to trust (PEM)', { completes: 'file' }),
  keyFile: text('FILE', "your operator's private key", { completes: 'file' }),
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
  readonly formats?: readonly ExtraFormat[];
}): Options => ({
  ...(command.consent ? CONSENT_OPTIONS : {}),
  ...OUTPUT_OPTIONS,
  output: outputOption(command.formats ?? []),
  ...(command.connection ? CONNECTION_OPTIONS : {}),
});

/** Values of the global options. */
export interface Globals {
  readonly output: OutputFormat;
  readonly noColor: boolean;
  readonly verbose: boolean;
  readonly yes: boolean;
  readonly url: string | undefined;
  readonly profile: string | undefined;
  readonly tlsFingerprint: string | undefined;
  readonly ca: string | undefined;
  readonly keyFile: string | undefined;
  readonly allowUnboundLogin: boolean;
}

/** Parses the global options. `formats` are the extra formats of the command. Throws `usage`. */
export function readGlobals(
  raw: Readonly<Record<string, readonly string[]>>,
  formats: readonly ExtraFormat[] = [],
): Globals {
  const given = (key: keyof typeof GLOBAL_OPTIONS) => raw[key] ?? [];
  const output = outputOption(formats);
  const { output: _, json, color, verbose, yes, allowUnboundLogin, ...texts } = GLOBAL_OPTIONS;
  return {
    output: json.parse(given('json'), '--json') ? 'json' : (output.parse(given('output'), '--output') ?? 'table'),
    noColor: color.parse(given('color'), '--no-color'),
    verbose: verbose.parse(given('verbose'), '--verbose'),
    yes: yes.parse(given('yes'), '--yes'),
    url: texts.url.parse(given('url'), '--url'),
    profile: texts.profile.parse(given('profile'), '--profile'),
    tlsFingerprint: texts.tlsFingerprint.parse(given('tlsFingerprint'), '--tls-fingerprint'),
    ca: texts.ca.parse(given('ca'), '--ca'),
    keyFile: texts.keyFile.parse(given('keyFile'), '--key-file'),
    allowUnboundLogin: allowUnboundLogin.parse(given('allowUnboundLogin'), '--allow-unbound-login'),
  };
}

/** Returns how many words a global option takes, 1 or 2; 0 if the word is not one. */
export function globalOptionLength(word: string): 0 | 1 | 2 {
  for (const [key, option] of Object.entries(GLOBAL_OPTIONS)) {
    const long = flagOf(key, option);
    const short = option.short === null ? null : `-${option.short}`;
    if (word === long || word === short) return option.placeholder === null ? 1 : 2;
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
    color: has('--no-color'),
    verbose: has('-v', '--verbose'),
  });
}
