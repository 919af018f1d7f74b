/** `orch agent connect`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { flag, text } from '../../option.js';
import { agentOptions } from './agent-options.js';

export const command = defineCommand({
  examples: ['orch agent connect orch.home --orchestrator-key 3b6a27bc…29'],
  detail: [
    'Stays connected until it is stopped. The orchestrator has to have the given key ("orch status" shows it); without one',
    'it is shown and asked about on a terminal, or taken as it comes with --trust-on-first-use. It is remembered then. The',
    'configuration file is read again whenever it changes ("orch agent config-schema" tells what it may hold).',
  ],
  access: 'local',
  ownsSignals: true,
  args: { target: argument('HOST[:PORT]', 'the orchestrator; port 4747 when left out') },
  options: {
    orchestratorKey: text('HEX', "the orchestrator's public key"),
    trustOnFirstUse: flag('trust whatever key it shows the first time'),
    hostname: text('NAME', "what to call this machine instead of its system's name"),
    config: text('FILE', 'configuration file; /etc/orch/agent.yaml when it is there', { completes: 'file' }),
    ...agentOptions,
  },
  run: async ({ programs, prompt }, input) => {
    const confirmKey = (question: string) => prompt.confirm(question, 'add --orchestrator-key HEX');
    return { exitStatus: await programs.agent.connect({ ...input, confirmKey: prompt.possible ? confirmKey : null }) };
  },
});
