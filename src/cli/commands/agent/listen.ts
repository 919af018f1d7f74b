/** `orch agent`. */
import { defineCommand } from '../../define-command.js';
import { integer } from '../../option.js';
import { agentRunOptions } from './agent-options.js';
import { readToken } from './read-token.js';

export const command = defineCommand({
  examples: ['orch agent --orchestrator-key 3b6a27bc…29', 'orch agent --trust-on-first-use'],
  detail: [
    'Waits until an orchestrator says with a discovery packet where it is ("orch discover" sends one), connects to it and',
    'stays connected until it is stopped. It follows only packets that are signed with the pinned key, the given one, or the',
    'one in the enrolment token; with --trust-on-first-use and nothing pinned, the first that comes. It never answers one.',
    'When the connection is lost it tries the last place again and again, and listens as well. "orch agent connect" needs no',
    'packet.',
  ],
  access: 'local',
  ownsSignals: true,
  options: { port: integer('PORT', 'UDP port of discovery packets; 4747'), ...agentRunOptions },
  run: async (context, input) => {
    const token = await readToken(context, input.token);
    return { exitStatus: await context.programs.agent.listen({ ...input, token }) };
  },
});
