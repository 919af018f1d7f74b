/** `orch agent connect`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { agentRunOptions } from './agent-options.js';
import { readToken } from './read-token.js';

export const command = defineCommand({
  examples: [
    'orch agent connect orch.home --orchestrator-key 3b6a27bc…29',
    'echo orch-enroll-v1.… | orch agent connect orch.home --token -',
  ],
  detail: [
    'Stays connected until it is stopped. The orchestrator has to have the given key ("orch status" shows it), or the one in',
    'the enrolment token ("orch enroll create" makes one); without both it is shown and asked about on a terminal, or taken',
    'as it comes with --trust-on-first-use. It is remembered then. The configuration file is read again whenever it changes',
    '("orch agent config-schema" tells what it may hold).',
    'A token is shown to the orchestrator once and not kept. Better than as a word of the command, which others on this',
    'machine may see, it is given on standard input (-), in a file (@FILE) or as the variable ORCH_AGENT_TOKEN.',
  ],
  access: 'local',
  ownsSignals: true,
  args: { target: argument('HOST[:PORT]', 'the orchestrator; port 4747 when left out') },
  options: agentRunOptions,
  run: async (context, input) => {
    const { programs, prompt } = context;
    const token = await readToken(context, input.token);
    const confirmKey = (question: string) => prompt.confirm(question, 'add --orchestrator-key HEX');
    return {
      exitStatus: await programs.agent.connect({ ...input, token, confirmKey: prompt.possible ? confirmKey : null }),
    };
  },
});
