/** `orch agents list`. */
import { AGENT_STATUSES } from '../../../contract/agent-statuses.js';
import { Fault } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { agentHandle } from '../../format.js';
import { allAgents } from '../../nodes/agent-pages.js';
import { choice, flag, text } from '../../option.js';
import { agentTable } from './agent-view.js';

export const command = defineCommand({
  examples: [
    'orch agents',
    'orch agents --status pending',
    'orch agents --offline',
    'orch agents --selector "platform=linux,role=web"',
  ],
  access: 'viewer',
  options: {
    status: choice('STATUS', AGENT_STATUSES, 'only those'),
    selector: text('SELECTOR', 'only those that it selects (see: orch help selectors)', { short: 'l' }),
    filter: text('SELECTOR', 'the same as --selector'),
    offline: flag('only approved agents that are not connected'),
  },
  run: async (context, { status, selector, filter = selector, offline }) => {
    if (selector !== undefined && selector !== filter) {
      throw new Fault('usage', '--selector and --filter are the same: give one of them');
    }
    if (offline && status !== undefined && status !== 'approved') {
      throw new Fault('usage', `--offline is about approved agents, so --status ${status} does not go with it`);
    }
    const query = { status: offline ? 'approved' : status, filter, signal: context.signal } as const;
    const all = await allAgents(await context.api(), query);
    const agents = offline ? all.filter(({ connected }) => !connected) : all;
    return {
      body: agents,
      names: agents.map(agentHandle),
      view: agentTable(agents, {
        wide: context.globals.output === 'wide',
        filtered: status !== undefined || filter !== undefined || offline,
      }),
    };
  },
});
