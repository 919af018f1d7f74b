/** The help: of everything, of a group, of one command, and of all commands together. */
import type { Argument } from '../argument.js';
import { type CommandEntry, SECTIONS } from '../commands/index.js';
import type { Command } from '../define-command.js';
import { entryOf, groupOf, wordsBelow } from '../find-command.js';
import { optionsBeside } from '../global-options.js';
import { flagOf, type Option, type Options } from '../option.js';
import { argumentSyntax } from '../parse-input.js';
import { fieldsOf, headed, type Line, lines, linesOf, stack, stackOf, styled, type View } from '../view.js';
import { TOPICS } from './topics.js';

const EXAMPLES = ['orch agents', 'orch plan web-01 -f site.orch.yaml', 'orch apply web-01 -f site.orch.yaml'];

const indented = (rows: readonly (readonly [string, string])[]): View =>
  fieldsOf(rows.map(([label, value]) => [`  ${label}`, value] as const));

/** `orch --help`. */
export function overview(): View {
  const sections = SECTIONS.map(([title, words]) =>
    headed(title, indented(words.map((word) => [word, summaryOf(word)] as const))),
  );
  return stackOf([
    lines(['orch', ' manages a fleet of machines by what they should be.']),
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
  const words = [group?.otherwise, group?.standard].flatMap((word) => word ?? []);
  const shown = words.length > 0 ? words : wordsBelow(path).slice(0, 1);
  const loaded = await Promise.all(shown.map((word) => entryOf(`${path} ${word}`)?.load()));
  const examples = loaded.flatMap((module) => module?.command.examples[0] ?? []);
  const rows = wordsBelow(path).map((word) => [`${path} ${word}`, summaryOf(`${path} ${word}`)] as const);
  const standard = group?.standard ? [`"orch ${path}" alone is "orch ${path} ${group.standard}".`] : [];
  const otherwise = group?.otherwise ? [`Before any other word it is "orch ${path} ${group.otherwise}".`] : [];
  return stack(
    linesOf(examples.map((example): Line => [styled('dim', '$ '), example])),
    lines(`orch ${path}: ${group?.summary ?? ''}.`),
    indented(rows),
    linesOf([...standard, ...otherwise, `What each takes: orch ${path} ${wordsBelow(path)[0] ?? 'COMMAND'} --help`]),
  );
}

export async function commandHelp(entry: CommandEntry): Promise<View> {
  const { command } = await entry.load();
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
    linesOf(accessLine(command)),
  );
}

function usageOf(path: string, { args, options }: Command): string {
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

function optionSyntax(key: string, option: Option<unknown>): string {
  const short = option.short === null ? '    ' : `-${option.short}, `;
  return `${short}${flagOf(key, option)}${option.placeholder === null ? '' : ` ${option.placeholder}`}`;
}

function optionSummary({ summary, choices, many }: Option<unknown>): string {
  const words = choices === null ? '' : `: ${choices.join(', ')}`;
  return `${summary}${words}${many ? ' (may be repeated)' : ''}`;
}

/** The sentence about roles; nothing where every operator may. */
function accessLine({ access }: Command): readonly Line[] {
  if (access === 'admin') return ['Needs the role admin.'];
  return access === 'operator' ? ['Not for the role viewer.'] : [];
}

const summaryOf = (path: string): string => groupOf(path)?.summary ?? entryOf(path)?.summary ?? '';

const section = (title: string, rows: readonly (readonly [string, string])[]): View => headed(title, indented(rows));
