/** `orch help`: the help of groups, commands and topics. */

import { Fault } from '../../kernel/fault.js';
import { API_PORT } from '../../kernel/ports.js';
import { nearest } from '../../language/nearest.js';
import { type Argument, type Command, defineCommand, optionalList } from '../define-command.js';
import { EXIT_MEANINGS, EXIT_PRECEDENCE } from '../exit-status.js';
import { entryOf, findCommand, groupOf, wordsBelow } from '../find-command.js';
import { optionsBeside } from '../global-options.js';
import { flag, flagOf, type Option, type Options } from '../options.js';
import { fields, fieldsOf, headed, type Line, lines, linesOf, stack, stackOf, styled, type View } from '../outcome.js';
import { argumentSyntax } from '../parse-input.js';
import { COMMANDS, type CommandEntry, SECTIONS } from './index.js';

export interface Topic {
  readonly name: string;
  readonly summary: string;
  readonly view: () => View;
}

export const TOPICS: readonly Topic[] = [
  {
    name: 'exit-codes',
    summary: 'the exit statuses of commands',
    view: () =>
      stack(
        headed(
          'How orch ends',
          fieldsOf(EXIT_MEANINGS.map(([status, meaning]) => [String(status).padStart(3), meaning] as const)),
        ),
        headed('If several apply', linesOf(EXIT_PRECEDENCE)),
      ),
  },
  {
    name: 'environment',
    summary: 'the environment variables that orch reads',
    view: () =>
      stack(headed('Variables', lines('A flag overrides its variable, and both override the profile.')), environment),
  },
  {
    name: 'selectors',
    summary: 'how to select agents by attributes and tags',
    view: () => stack(headed('Selectors', linesOf(selectorText)), selectorTable),
  },
  {
    name: 'output',
    summary: 'what goes to standard output and what to standard error',
    view: () => stack(headed('Output', outputTable), linesOf(outputText)),
  },
];

export const command = defineCommand({
  examples: ['orch help agents approve', 'orch help exit-codes', 'orch help --all'],
  access: 'local',
  args: {
    words: optionalList(
      'WORD',
      `the words of a command, or a topic: ${TOPICS.map(({ name }) => name).join(', ')}`,
      'command-or-topic',
    ),
  },
  options: { all: flag('print the help of all commands and topics') },
  run: async (_context, { words, all }) => {
    if (all) return { view: await helpAllView() };
    return { view: await helpOf(words) };
  },
});

async function helpOf(words: readonly string[]): Promise<View> {
  const [first] = words;
  if (first === undefined) return overview();
  const topic = words.length === 1 ? TOPICS.find(({ name }) => name === first) : undefined;
  if (topic) return topic.view();
  const found = findCommand(words);
  const path = found.kind === 'command' ? found.entry.path : found.path;
  // "help agents" explains the group, not its default command.
  if (words.join(' ') !== path) {
    if (found.kind === 'command' && found.rest.length === 0) return groupHelp(words.join(' '));
    throw unknown(words);
  }
  return found.kind === 'command' ? commandHelp(found.entry) : groupHelp(path);
}

function unknown(words: readonly string[]): Fault {
  const meant = nearest(words[0] ?? '', [...wordsBelow(''), ...TOPICS.map(({ name }) => name)]);
  return new Fault('usage', `there is no help on "${words.join(' ')}"`, {
    hint: meant === null || words.length > 1 ? 'see: orch help' : `did you mean "orch help ${meant}"?`,
  });
}

const EXAMPLES = ['orch agents', 'orch plan web-01 -f site.orch.yaml', 'orch apply web-01 -f site.orch.yaml'];

const indented = (rows: readonly (readonly [string, string])[]): View =>
  fieldsOf(rows.map(([label, value]) => [`  ${label}`, value] as const));

/** `orch --help`. */
export function overview(): View {
  const sections = SECTIONS.map(([title, words]) =>
    headed(title, indented(words.map((word) => [word, summaryOf(word)] as const))),
  );
  return stackOf([
    lines(['orch', ' keeps a fleet of machines in the state that you describe.']),
    headed('For example', linesOf(EXAMPLES.map((example) => `  ${example}`))),
    ...sections,
    headed('Topics', indented(TOPICS.map(({ name, summary }) => [`help ${name}`, summary] as const))),
    lines('orch COMMAND --help explains a command, orch help --all every one of them.'),
  ]);
}

/** `orch agents --help`, and `orch --help` for no path. */
export async function groupHelp(path: string): Promise<View> {
  if (path === '') return overview();
  const group = groupOf(path);
  const words = [group?.fallback, group?.standard].flatMap((word) => word ?? []);
  const shown = words.length > 0 ? words : wordsBelow(path).slice(0, 1);
  const loaded = await Promise.all(shown.map((word) => entryOf(`${path} ${word}`)?.load()));
  const examples = loaded.flatMap((command) => command?.examples[0] ?? []);
  const rows = wordsBelow(path).map((word) => [`${path} ${word}`, summaryOf(`${path} ${word}`)] as const);
  const standard = group?.standard ? [`"orch ${path}" alone is "orch ${path} ${group.standard}".`] : [];
  const otherwise = group?.fallback ? [`Before any other word it is "orch ${path} ${group.fallback}".`] : [];
  return stack(
    linesOf(examples.map((example): Line => [styled('dim', '$ '), example])),
    lines(`orch ${path}: ${group?.summary ?? ''}.`),
    indented(rows),
    linesOf([
      ...standard,
      ...otherwise,
      `Options of a command: orch ${path} ${wordsBelow(path)[0] ?? 'COMMAND'} --help`,
    ]),
  );
}

export async function commandHelp(entry: CommandEntry): Promise<View> {
  const command = await entry.load();
  const access = accessOf(command);
  const below = wordsBelow(entry.path).map((word) => `${entry.path} ${word}`);
  return stack(
    linesOf(command.examples.map((example): Line => [styled('dim', '$ '), example])),
    lines(`orch ${entry.path}: ${entry.summary}.`),
    lines([styled('strong', 'Usage: '), usageOf(entry.path, command)]),
    section(
      'Arguments',
      Object.values(command.args).map((argument) => [argument.placeholder, argument.summary] as const),
    ),
    section('Options', optionRows(command.options)),
    section('Common options', optionRows(optionsBeside(command))),
    section(
      'See also',
      below.map((path) => [path, summaryOf(path)] as const),
    ),
    linesOf(command.detail),
    linesOf(access === null ? [] : [access]),
  );
}

/** Returns the command line of a command, with its arguments and required options. */
export function usageOf(path: string, { args, options }: Command): string {
  const syntaxOf = (dashed: boolean) =>
    Object.values(args).flatMap((argument: Argument<unknown>) =>
      (argument.dashed ?? false) === dashed ? argumentSyntax(argument) : [],
    );
  const required = Object.entries(options)
    .filter(([, option]) => option.required)
    .map(([key, option]) => `${flagOf(key, option)} ${option.placeholder}`);
  const rest = Object.values(options).some((option) => !option.required) ? ['[OPTIONS]'] : [];
  return ['orch', path, ...syntaxOf(false), ...required, ...rest, ...syntaxOf(true)].join(' ');
}

const optionRows = (options: Options): readonly (readonly [string, string])[] =>
  Object.entries(options).map(([key, option]) => [optionSyntax(key, option), optionSummary(option)] as const);

/** Returns the flags of an option, aligned for a table. */
export function optionSyntax(key: string, option: Option<unknown>): string {
  const short = option.short === null ? '    ' : `-${option.short}, `;
  return `${short}${flagOf(key, option)}${valueSyntax(option)}`;
}

function valueSyntax({ placeholder, bare }: Option<unknown>): string {
  if (placeholder === null) return '';
  return bare === null ? ` ${placeholder}` : `[=${placeholder}]`;
}

/** Returns the meaning of an option, with its choices. */
export function optionSummary({ summary, choices, many }: Option<unknown>): string {
  const words = choices === null ? '' : `: ${choices.join(', ')}`;
  return `${summary}${words}${many ? ' (may be repeated)' : ''}`;
}

/** Returns a sentence about the required role; null if each operator may run the command. */
export function accessOf({ access }: Command): string | null {
  if (access === 'admin') return 'Needs the role admin.';
  return access === 'operator' ? 'Not for the role viewer.' : null;
}

const summaryOf = (path: string): string => groupOf(path)?.summary ?? entryOf(path)?.summary ?? '';

const section = (title: string, rows: readonly (readonly [string, string])[]): View =>
  headed(title, indented(rows.flatMap(([word, meaning]) => brokenRow(word, meaning, roomBeside(rows)))));

/** Maximum columns of the help, and those of the indentation and of the gap between two cells. */
const WIDTH = 120;
const GAPS = 4;

const roomBeside = (rows: readonly (readonly [string, string])[]): number =>
  WIDTH - GAPS - Math.max(...rows.map(([word]) => word.length));

/** Breaks a long meaning between words, into rows without a word of their own. */
function brokenRow(word: string, meaning: string, room: number): readonly (readonly [string, string])[] {
  if (meaning.length <= room) return [[word, meaning]];
  const end = meaning.lastIndexOf(' ', room);
  if (end <= 0) return [[word, meaning]];
  return [[word, meaning.slice(0, end)], ...brokenRow('', meaning.slice(end + 1), room)];
}

/** Returns the overview, the commands in index order, and the topics. */
async function helpAllView(): Promise<View> {
  const commands: View[] = [];
  for (const entry of COMMANDS.filter(({ hidden }) => !hidden)) {
    commands.push(lines(styled('accent', `── orch ${entry.path} ──`)), await commandHelp(entry));
  }
  return stackOf([overview(), ...commands, ...TOPICS.map((topic) => topic.view())]);
}

const environment = fields(
  ['ORCH_URL', `URL of the orchestrator, such as https://host:${API_PORT} (--url)`],
  ['ORCH_PROFILE', 'profile of the orchestrator (--profile)'],
  ['ORCH_TLS_FINGERPRINT', 'the certificate to accept (--tls-fingerprint)'],
  ['ORCH_CA', 'file of the certificate authority to accept (--ca)'],
  ['ORCH_KEY_FILE', "file of your operator's private key (--key-file)"],
  ['ORCH_KEY', 'the private key itself, as PEM; the session token then stays off the disk'],
  ['ORCH_TOKEN', 'a session token, used instead of a login'],
  ['ORCH_ALLOW_UNBOUND_LOGIN', 'true: log in to servers that do not bind the login to their certificate'],
  ['ORCH_ALLOW_PLAIN_HTTP', 'true: speak plain HTTP to hosts beyond loopback'],
  ['ORCH_SSH_AGENT', 'the public key whose private half an ssh-agent keeps (--ssh-agent)'],
  ['ORCH_NO_STATE', '1: write no session tokens and no profiles'],
  ['ORCH_PAGER, PAGER', 'the pager of long output on a terminal; empty or "cat": none [less -FRX] (--no-pager)'],
  ['HTTPS_PROXY, NO_PROXY', 'the proxy, and the hosts that need none'],
  ['NO_COLOR', 'not empty: no colours, whatever the next three say (--color and --no-color override it)'],
  ['CLICOLOR_FORCE, FORCE_COLOR', 'not 0: colours even without a terminal; FORCE_COLOR=0: none'],
  ['CLICOLOR', '0: no colours'],
  ['XDG_CONFIG_HOME', 'directory of orch/config.yaml and orch/operator.key [~/.config]'],
  ['XDG_STATE_HOME', 'directory of session tokens [~/.local/state]'],
);

const selectorText: readonly Line[] = [
  'A selector is a list of terms, joined by commas or spaces, that must all hold.',
  'arch, distro, init_system, platform and version test what the agent reports about its machine;',
  'every other key tests the tag of that name. "tag." in front always means the tag.',
];

const selectorTable = fields(
  ['role=web', 'the tag role is web (also: role==web)'],
  ['role!=web', 'the tag role is something else, or missing'],
  ['role', 'there is a tag role'],
  ['!role', 'there is none'],
  ['env in (prod,stage)', 'one of these'],
  ['env notin (prod)', 'none of these'],
  ['platform=linux,role=web', 'both'],
  ['*', 'every approved agent'],
);

const outputTable = fields(
  ['-o table', 'for people, cut to fit the terminal [default]'],
  ['-o wide', 'the same with more columns, never cut'],
  ['-o json', "the API's own answer; --json for short"],
  ['-o yaml', 'the same as YAML'],
  ['-o name', 'the names or ids alone, one a line; -q for short, which also leaves out notes and warnings'],
  ['-o jsonpath=EXPR', "parts of the API's answer, one a line: -o jsonpath='$[?@.connected==false].name'"],
);

const outputText: readonly Line[] = [
  'Standard output carries the answer alone. Progress, questions, warnings and errors go to standard error.',
  'With -o json an error is the problem document of the API (RFC 9457) on standard error, on one line, the last one.',
  'There, "code" is stable; what failed on this machine has the same shape and a code of its own.',
  'plan, apply and drift with one NODE print the answer of the API. With several, or with --selector, they print one object',
  '{has_changes, results: [{node_id, name, status, result, error}], summary}.',
  'plan and apply with --assignment print the answer of the API, which contains no results.',
  'exec prints the output of the remote command; with -o json one object per agent, with several agents one per line.',
  "EXPR is a JSONPath (RFC 9535). A text is printed as it is, anything else as JSON on one line. kubectl's {.items[*].name}",
  'works too. The expression is checked before the command does anything.',
  'On a terminal, output that does not fit goes through the pager (orch help environment), unless --no-pager is given.',
  '--watch redraws a list on a terminal. Elsewhere it prints each new or changed row again; with -o json as one line each.',
  'Long lists with --all print one API answer per page, one after another.',
  'Control characters in text of agents and servers are shown as \\x1b or \\u202e. JSON and YAML escape them.',
];
