/** `orch drift list`. */
import type { ApiClient } from '../../../client/api-client.js';
import { DRIFT_STATUSES } from '../../../contract/runs.js';
import type { Context } from '../../context.js';
import { defineCommand } from '../../define-command.js';
import { agentHandle } from '../../format.js';
import { readList } from '../../list-pages.js';
import { allAgents } from '../../nodes/agent-pages.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { choice, integer, text } from '../../option.js';
import { driftTable } from './drift-view.js';

export const command = defineCommand({
  examples: ['orch drift list --status drifted', 'orch drift list --agent web-01'],
  access: 'viewer',
  options: {
    agent: text('NODE', 'only of this agent', { completes: 'node' }),
    status: choice('STATUS', DRIFT_STATUSES, 'only those'),
    limit: integer('N', 'at most that many, newest first; 50 when left out', 1),
  },
  run: async (context, { agent, status, limit }) => {
    const { signal } = context;
    const api = await context.api();
    const one = agent === undefined ? null : await resolveNode(api, agent, { signal });
    const { items: records } = await readList(context, {
      limit,
      read: (page) => {
        const query = { status: status ?? null, ...page };
        return one
          ? api.callFull('listAgentDrift', { params: { node_id: one.node_id }, query, signal })
          : api.callFull('listDrift', { query, signal });
      },
      itemsOf: (body) => body.records,
    });
    const names = await nameTable(context, api, one === null);
    return {
      body: { records },
      names: records.map(({ drift_id }) => drift_id),
      view: driftTable(records, {
        nameOf: (id) => (one ? agentHandle(one) : (names.get(id) ?? id)),
        now: context.clock.now(),
        filtered: agent !== undefined || status !== undefined,
      }),
    };
  },
});

/** Names by node ID, when people are going to read them. */
async function nameTable({ globals, signal }: Context, api: ApiClient, wanted: boolean): Promise<Map<string, string>> {
  const forPeople = globals.output === 'table' || globals.output === 'wide';
  const agents = wanted && forPeople ? await allAgents(api, { signal }) : [];
  return new Map(agents.map((agent) => [agent.node_id, agentHandle(agent)]));
}
