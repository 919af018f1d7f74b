/** `orch agent repin`. */
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';
import { agentOptions } from './agent-options.js';

export const command = defineCommand({
  examples: ['orch agent repin'],
  detail: ['For an orchestrator that really has a new key. The next "orch agent connect" pins the one it is given.'],
  access: 'local',
  consent: true,
  options: agentOptions,
  run: async ({ programs, prompt }, input) => {
    await prompt.consent("Forget the orchestrator's key that this machine's agent has pinned?");
    await programs.agent.repin(input);
    return { view: lines('Forgot it. Connect again with: orch agent connect HOST --orchestrator-key HEX') };
  },
});
