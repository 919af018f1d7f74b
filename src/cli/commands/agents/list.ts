/** `orch agents list`. */
import { AGENT_STATUSES } from '../../../contract/agent-statuses.js';
import { defineCommand } from '../../define-command.js';
import { agentHandle } from '../../format.js';
import { allAgents } from '../../nodes/agent-pages.js';
import { choice, text } from '../../option.js';
import { agentTable } from './agent-view.js';

export const command = defineCommand({
  examples: ['orch agents', 'orch agents --status pending', 'orch agents --filter "platform=linux,role=web"'],
  access: 'viewer',
  options: {
    status: choice('STATUS', AGENT_STATUSES, 'only those'),
    filter: text('SELECTOR', 'only those that it selects (see: orch help selectors)'),
  },
  run: async (context, { status, filter }) => {
    const agents = await allAgents(await context.api(), { status, filter, signal: context.signal });
    return {
      body: agents,
      names: agents.map(agentHandle),
      view: agentTable(agents, {
        wide: context.globals.output === 'wide',
        filtered: status !== undefined || filter !== undefined,
      }),
    };
  },
});
