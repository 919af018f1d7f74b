/** What may stand at the end of a command line. */
import type { Context } from '../context.js';
import type { Command } from '../define-command.js';
import { entryOf, findCommand, groupOf, wordsBelow } from '../find-command.js';
import { optionsBeside } from '../global-options.js';
import type { LiveValue } from '../live-value.js';
import { flagOf, type Option, type Options } from '../option.js';
import { liveValues } from './live-values.js';

export interface Candidate {
  readonly word: string;
  readonly summary: string;
}

/** Names come from other people: nothing that a shell reads as more than a word. */
const PLAIN = /^[\p{L}\p{N}._:@/=+-]+$/u;

export async function candidates(context: Context, words: readonly string[]): Promise<readonly Candidate[]> {
  const current = words.at(-1) ?? '';
  const all = await allCandidates(context, words.slice(0, -1), current);
  return all.filter(({ word }) => word === ':file' || (PLAIN.test(word) && word.startsWith(current)));
}

async function allCandidates(
  context: Context,
  before: readonly string[],
  current: string,
): Promise<readonly Candidate[]> {
  const found = findCommand(before);
  const path = found.kind === 'command' ? found.entry.path : found.path;
  const atWords = before.filter((word) => !word.startsWith('-')).join(' ');
  // The group's own words stand beside the arguments of its standard command.
  const below = atWords === path || groupOf(atWords) ? wordsBelow(atWords) : [];
  const subcommands = below.map((word) => describeWord(atWords === '' ? word : `${atWords} ${word}`, word));
  if (found.kind === 'group') {
    return current.startsWith('-')
      ? optionCandidates(optionsBeside({ connection: true, consent: false }))
      : subcommands;
  }
  const { command } = await found.entry.load();
  const options = optionsOf(command);
  const pending = optionBefore(before.at(-1), options);
  if (pending) return valueCandidates(context, pending.completes, pending.choices);
  if (current.startsWith('-')) return optionCandidates(options);
  const argument = nextArgument(command, found.rest, options);
  return [...subcommands, ...(await valueCandidates(context, argument?.completes ?? null, null))];
}

const describeWord = (path: string, word: string): Candidate => ({
  word,
  summary: groupOf(path)?.summary ?? entryOf(path)?.summary ?? '',
});

const optionsOf = (command: Command): Options => ({ ...command.options, ...optionsBeside(command) });

const optionCandidates = (options: Options): readonly Candidate[] =>
  Object.entries(options).map(([key, option]) => ({ word: flagOf(key, option), summary: option.summary }));

/** The option that waits for its value. */
function optionBefore(word: string | undefined, options: Options): Option<unknown> | null {
  if (word === undefined) return null;
  for (const [key, option] of Object.entries(options)) {
    const spelled = word === flagOf(key, option) || (option.short !== null && word === `-${option.short}`);
    if (spelled && option.placeholder !== null) return option;
  }
  return null;
}

/** The argument whose turn it is, behind those that are given. */
function nextArgument({ args }: Command, rest: readonly string[], options: Options) {
  let given = 0;
  for (const [index, word] of rest.entries()) {
    if (!word.startsWith('-') && optionBefore(rest[index - 1], options) === null) given += 1;
  }
  const all = Object.values(args).filter(({ dashed }) => !dashed);
  if (all.length < Object.keys(args).length && rest.includes('--')) return undefined;
  const last = all.at(-1);
  return all[given] ?? (last?.many ? last : undefined);
}

async function valueCandidates(
  context: Context,
  live: LiveValue | null,
  choices: readonly string[] | null,
): Promise<readonly Candidate[]> {
  if (choices) return choices.map((word) => ({ word, summary: '' }));
  if (live === 'file') return [{ word: ':file', summary: '' }];
  return live === null ? [] : liveValues(context, live);
}
