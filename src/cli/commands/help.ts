/** `orch help`. */
import { Fault } from '../../kernel/fault.js';
import { nearest } from '../../language/nearest.js';
import { optionalList } from '../argument.js';
import { defineCommand } from '../define-command.js';
import { findCommand, wordsBelow } from '../find-command.js';
import { commandHelp, groupHelp, overview } from '../help/help.js';
import { helpAllView } from '../help/help-all.js';
import { TOPICS } from '../help/topics.js';
import { flag } from '../option.js';
import type { View } from '../view.js';

export const command = defineCommand({
  examples: ['orch help agents approve', 'orch help exit-codes', 'orch help --all'],
  access: 'local',
  args: {
    words: optionalList('WORD', `the words of a command, or a topic: ${TOPICS.map(({ name }) => name).join(', ')}`),
  },
  options: { all: flag('every command and every topic') },
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
  // "help agents" explains the group, not the command that its name alone stands for.
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
