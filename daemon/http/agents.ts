/** Handlers of the agents' routes. */
import { AGENT_LIST_LIMIT, type agentRoutes } from '../../src/contract/agents.js';
import { clampLimit } from '../../src/contract/shapes.js';
import type { AgentService } from '../fleet/agent-service.js';
import type { HandlersFor } from './handler.js';
import { linkTo } from './query-string.js';

export const agentHandlers = (agents: AgentService): HandlersFor<typeof agentRoutes> => ({
  listAgents: async ({ query }) => {
    const limit = clampLimit(query.limit, AGENT_LIST_LIMIT.standard, AGENT_LIST_LIMIT.maximum);
    // One more than asked for tells whether there is a next page.
    const page = await agents.list({ ...query, limit: limit + 1 });
    const body = page.slice(0, limit);
    const last = body.at(-1);
    if (page.length <= limit || last === undefined) return { status: 200, body };
    return { status: 200, body, headers: linkTo('/agents', { ...query, limit, after: last.node_id }) };
  },
  getAgent: async ({ params }) => ({ status: 200, body: await agents.get(params.node_id) }),
  setAgentStatus: async ({ params, body, context }) => ({
    status: 200,
    body: await agents.setStatus(context, params.node_id, body),
  }),
  removeAgent: async ({ params, context }) => {
    await agents.remove(context, params.node_id);
    return { status: 204, body: undefined };
  },
  getAgentAttributes: async ({ params }) => ({ status: 200, body: (await agents.get(params.node_id)).attributes }),
});
