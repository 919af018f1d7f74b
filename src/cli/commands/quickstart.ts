/** `orch quickstart`: a guided tour of a complete system. */
import { defineCommand, flag, text } from '../define-command.js';

export const command = defineCommand({
  examples: ['orch quickstart', 'orch quickstart --keep'],
  detail: [
    'Starts an orchestrator and an agent on loopback ports with everything below one new directory, approves the agent,',
    'applies an example module, changes a file behind its back, shows the drift, applies again, and stops.',
    'Touches nothing else of the machine and needs no root.',
  ],
  access: 'local',
  ownsSignals: true,
  options: {
    keep: flag('keep running afterwards, until Ctrl-C'),
    dir: text('DIR', 'new directory for all its data [a temporary one]', { completes: 'file' }),
  },
  run: async ({ programs, color }, { keep, dir }) => ({ exitStatus: await programs.quickstart({ keep, dir, color }) }),
});
