/** Reads lists page by page: the API gives at most so many records at a time, and names the next page in a header. */

import type { ApiClient } from '../client/api-client.js';
import type { AgentStatus } from '../contract/agent-statuses.js';
import type { Agent } from '../contract/agents.js';
import type { Context } from './context.js';

/** An answer of the API with its headers. */
interface Page<Body> {
  readonly body: Body;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ListRequest<Body, Item> {
  /** Records that were asked for; undefined for as many as the API gives at once. */
  readonly limit: number | undefined;
  readonly read: (page: { readonly limit: number | null; readonly cursor: string | null }) => Promise<Page<Body>>;
  readonly itemsOf: (body: Body) => readonly Item[];
}

/** Returns the first page's body and the records of all pages up to the limit. Notes when more records are left without one. */
export async function readList<Body, Item>(
  context: Pick<Context, 'note'>,
  { limit, read, itemsOf }: ListRequest<Body, Item>,
): Promise<{ readonly first: Body; readonly items: readonly Item[] }> {
  let page = await read({ limit: limit ?? null, cursor: null });
  const first = page.body;
  const items = [...itemsOf(first)];
  for (let cursor = nextCursor(page.headers); cursor !== null; cursor = nextCursor(page.headers)) {
    if (limit === undefined) context.note('There are older ones: --limit N shows more.');
    if (limit === undefined || items.length >= limit) break;
    page = await read({ limit: limit - items.length, cursor });
    items.push(...itemsOf(page.body));
  }
  return { first, items };
}

/** The cursor in the address of the next page; null on the last page. */
export function nextCursor({ link = '' }: Readonly<Record<string, string>>): string | null {
  const address = /<([^>]*)>\s*;\s*rel="?next"?/.exec(link)?.[1];
  return address === undefined ? null : new URL(address, 'http://localhost').searchParams.get('cursor');
}

/** Whether a page is not the last one. */
export const hasNext = ({ link = '' }: Readonly<Record<string, string>>): boolean => /rel="?next"?/.test(link);

/** Reads the list of agents page by page. */
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
