/** `orch agent leave`. */
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';
import { agentOptions } from './agent-options.js';

export const command = defineCommand({
  examples: ['orch agent leave'],
  detail: [
    'Stops and deletes the service orch-agent when it runs this agent, and deletes the identity, the pinned key and the',
    'journal. What modules have put on this machine stays. On the orchestrator, reject the agent and remove it.',
  ],
  access: 'local',
  consent: true,
  options: agentOptions,
  run: async ({ programs, prompt, note }, input) => {
    const { data_dir, service, service_kept } = await programs.agent.whatLeaves(input);
    const what = service === null ? data_dir : `${data_dir} and the service ${service}`;
    if (service_kept !== null) note(`A service is left alone. ${service_kept}`);
    await prompt.consent(`Delete ${what}, and with it the identity of this machine in its fleet?`);
    const left = await programs.agent.leave(input);
    return {
      body: left,
      view: lines(`Left. On the orchestrator: orch agents reject NODE, then orch agents remove NODE`),
    };
  },
});
