/** Reads the list of agents page by page. */
import type { ApiClient } from '../../client/api-client.js';
import type { AgentStatus } from '../../contract/agent-statuses.js';
import type { Agent } from '../../contract/agents.js';
import { hasNext } from '../list-pages.js';

export interface AgentQuery {
  readonly status?: AgentStatus | undefined;
  readonly filter?: string | undefined;
  readonly signal: AbortSignal;
}

const PAGE = 1000;

export async function* agentPages(api: ApiClient, query: AgentQuery): AsyncIterable<readonly Agent[]> {
  const { status = null, filter = null, signal } = query;
  let after: string | null = null;
  do {
    const answer: { readonly body: readonly Agent[]; readonly headers: Readonly<Record<string, string>> } =
      await api.callFull('listAgents', { query: { status, filter, limit: PAGE, after }, signal });
    yield answer.body;
    after = hasNext(answer.headers) ? (answer.body.at(-1)?.node_id ?? null) : null;
  } while (after !== null);
}

/** All of them, in the API's order. */
export async function allAgents(api: ApiClient, query: AgentQuery): Promise<readonly Agent[]> {
  const all: Agent[] = [];
  for await (const page of agentPages(api, query)) all.push(...page);
  return all;
}
