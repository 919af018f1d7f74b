/** `orch help`: the help of groups, commands and topics. */
import { Fault } from '../../kernel/fault.js';
import { nearest } from '../../language/nearest.js';
import { defineCommand, optionalList } from '../define-command.js';
import { findCommand, wordsBelow } from '../find-command.js';
import { commandHelp, everyPage, groupHelp, overview } from '../help/pages.js';
import { TOPICS } from '../help/topics.js';
import { helpWidth } from '../help/wrap.js';
import { flag } from '../options.js';
import type { View } from '../outcome.js';

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
  run: async ({ streams }, { words, all }) => {
    const width = helpWidth(streams.stdout);
    return { view: all ? await everyPage(width) : await helpOf(words, width) };
  },
});

async function helpOf(words: readonly string[], width: number): Promise<View> {
  const [first] = words;
  if (first === undefined) return overview(width);
  const topic = words.length === 1 ? TOPICS.find(({ name }) => name === first) : undefined;
  if (topic) return topic.view(width);
  const found = findCommand(words);
  const path = found.kind === 'command' ? found.entry.path : found.path;
  // "help agents" explains the group, not its default command.
  if (words.join(' ') !== path) {
    if (found.kind === 'command' && found.rest.length === 0) return groupHelp(words.join(' '), width);
    throw unknown(words);
  }
  return found.kind === 'command' ? commandHelp(found.entry, width) : groupHelp(path, width);
}

function unknown(words: readonly string[]): Fault {
  const meant = nearest(words[0] ?? '', [...wordsBelow(''), ...TOPICS.map(({ name }) => name)]);
  return new Fault('usage', `there is no help on "${words.join(' ')}"`, {
    hint: meant === null || words.length > 1 ? 'see: orch help' : `did you mean "orch help ${meant}"?`,
  });
}
