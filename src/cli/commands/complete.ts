/** `orch __complete`: what the completion scripts of the shells call. */
import { optionalList } from '../argument.js';
import { candidates } from '../completion/candidates.js';
import { defineCommand } from '../define-command.js';
import { linesOf } from '../view.js';

export const command = defineCommand({
  examples: ['orch __complete -- agents show w'],
  detail: [
    'The last word is the one to complete. Each line is a candidate, a space and what it means; ":file" stands for files.',
  ],
  access: 'local',
  connection: true,
  // The word to complete is empty when nothing of it is typed yet.
  args: {
    words: {
      ...optionalList('WORD', 'the words of the command line so far'),
      parse: (given: readonly string[]) => given,
    },
  },
  run: async (context, { words }) => {
    const found = await candidates(context, words);
    return {
      body: found,
      names: found.map(({ word }) => word),
      view: linesOf(found.map(({ word, summary }) => `${word} ${summary}`.trim())),
    };
  },
});
