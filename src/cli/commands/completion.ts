/** `orch completion`. */

import { Fault } from '../../kernel/fault.js';
import { argument } from '../argument.js';
import { SHELLS, shellScript } from '../completion/shell-scripts.js';
import { defineCommand } from '../define-command.js';
import { listWords } from '../option.js';
import { linesOf, textLines } from '../view.js';

export const command = defineCommand({
  examples: [
    'source <(orch completion bash)',
    'orch completion zsh > ~/.zsh/completions/_orch',
    'orch completion fish > ~/.config/fish/completions/orch.fish',
  ],
  detail: ['Completes commands, flags, and live values: names of agents and modules, operators, profiles, operations.'],
  access: 'local',
  args: { shell: argument('SHELL', listWords(SHELLS)) },
  run: async (_context, { shell }) => {
    const known = SHELLS.find((candidate) => candidate === shell);
    if (known === undefined)
      throw new Fault('usage', `there is no completion for "${shell}"; there is for ${listWords(SHELLS)}`);
    return { view: linesOf(textLines(shellScript(known))) };
  },
});
