/** The commands of `orch agents` about what an agent is: its name, and which machine it is. */
import { Fault } from '../../kernel/fault.js';
import { argument, defineCommand } from '../define-command.js';
import { agentHandle, agentName } from '../format.js';
import { warnOfReuse } from '../nodes/approve-agent.js';
import { nodeArgument, resolveNode } from '../nodes/resolve-node.js';
import { lines } from '../outcome.js';
import { machineText } from '../render/contest.js';

/** `orch agents rename`. */
export const renameAgent = defineCommand({
  examples: ['orch agents rename web-01 frontend-01'],
  detail: [
    'Tags, assignments, secrets and what was applied stay. Records of the past keep the earlier name. A module that',
    'uses agent.name makes the agent behind. A name that looks like that of another agent, such as WEB-01 for web-01,',
    'is refused; one that another agent had before is given with a warning.',
  ],
  access: 'operator',
  args: { node: nodeArgument, name: argument('NAME', 'the new name') },
  run: async (context, { node, name }) => {
    const { signal } = context;
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal });
    const after = await api.call('renameAgent', { params: { node_id: agent.node_id }, body: { name }, signal });
    warnOfReuse(context, after);
    return {
      body: after,
      names: [agentHandle(after)],
      view: lines(`Renamed ${agentName(agent)} to ${agentName(after)}.`),
    };
  },
});

/** `orch agents keep`. */
export const keepMachine = defineCommand({
  examples: ['orch agents keep web-01'],
  detail: [
    'After a machine was copied with its agent, nothing is sent to that agent. Stop the agent on the copy, wait until',
    'the right machine is connected, and keep it: the others are turned away. "orch agent leave" gives a copy a key',
    'of its own. Rejecting and approving the agent forgets the decision.',
  ],
  access: 'operator',
  consent: true,
  args: { node: nodeArgument },
  run: async (context, { node }) => {
    const { signal } = context;
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal });
    const { node_id } = agent;
    const machines = agent.contest?.machines ?? [];
    if (machines.length === 0) {
      const text = `Only one machine has the key of ${agentName(agent)}: there is nothing to decide.`;
      return { body: agent, names: [agentHandle(agent)], view: lines(text) };
    }
    const kept = machines.find(({ connected }) => connected);
    if (kept === undefined) {
      throw new Fault('agent_not_connected', `no machine is connected as ${agentName(agent)}`, {
        hint: 'start the agent on the right machine, and decide when it is connected',
      });
    }
    const others = machines.filter((machine) => machine !== kept).map(machineText);
    const end = others.length === 0 ? '' : ` Turned away from then on: ${others.join(', ')}.`;
    await context.prompt.consent(`Is ${machineText(kept)} the machine ${agentName(agent)}?${end}`);
    const { hostname, address } = kept;
    const after = await api.call('keepMachine', { params: { node_id }, body: { hostname, address }, signal });
    const text = `${agentName(after)} is ${machineText(kept)}.${end}`;
    return { body: after, names: [agentHandle(after)], view: lines(text) };
  },
});
