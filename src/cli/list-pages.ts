/** Reads lists of the API page by page. The `Link` header of a page names the next one. */

import type { ApiClient } from '../client/api-client.js';
import type { AgentStatus } from '../contract/agent-statuses.js';
import type { Agent } from '../contract/agents.js';
import type { Standing } from '../contract/standing-names.js';
import type { Context } from './context.js';

/** A response of the API with its headers. */
interface Page<Body> {
  readonly body: Body;
  readonly headers: Readonly<Record<string, string>>;
}

interface ListRequest<Body, Item> {
  /** Requested number of records; undefined for the default page. */
  readonly limit: number | undefined;
  readonly read: (page: { readonly limit: number | null; readonly cursor: string | null }) => Promise<Page<Body>>;
  readonly itemsOf: (body: Body) => readonly Item[];
}

/** Returns the first page's body and the records of all pages up to the limit. Without a limit it notes that more records exist. */
export async function readList<Body, Item>(
  context: Pick<Context, 'note'>,
  { limit, read, itemsOf }: ListRequest<Body, Item>,
): Promise<{ readonly first: Body; readonly items: readonly Item[] }> {
  let page = await read({ limit: limit ?? null, cursor: null });
  const first = page.body;
  const items = [...itemsOf(first)];
  for (let cursor = nextCursor(page.headers); cursor !== null; cursor = nextCursor(page.headers)) {
    if (limit === undefined) context.note('More records exist: --limit N shows them.');
    if (limit === undefined || items.length >= limit) break;
    page = await read({ limit: limit - items.length, cursor });
    items.push(...itemsOf(page.body));
  }
  return { first, items };
}

/** Returns the cursor in the URL of the next page; null on the last page. */
export const nextCursor = (headers: Readonly<Record<string, string>>): string | null =>
  nextQuery(headers)?.get('cursor') ?? null;

function nextQuery({ link = '' }: Readonly<Record<string, string>>): URLSearchParams | null {
  const address = /<([^>]*)>\s*;\s*rel="?next"?/.exec(link)?.[1];
  return address === undefined ? null : new URL(address, 'http://localhost').searchParams;
}

/** Returns whether another page follows. */
export const hasNext = ({ link = '' }: Readonly<Record<string, string>>): boolean => /rel="?next"?/.test(link);

interface AgentQuery {
  readonly status?: AgentStatus | undefined;
  readonly standing?: Standing | undefined;
  readonly filter?: string | undefined;
  readonly signal: AbortSignal;
}

const PAGE = 1000;

async function* agentPages(api: ApiClient, query: AgentQuery): AsyncIterable<readonly Agent[]> {
  const { status = null, standing = null, filter = null, signal } = query;
  // Orchestrators of earlier releases name the cursor `after`.
  let place: { readonly cursor?: string | null; readonly after?: string | null } | null = {};
  do {
    const answer: { readonly body: readonly Agent[]; readonly headers: Readonly<Record<string, string>> } =
      await api.callWithHeaders('listAgents', { query: { status, standing, filter, limit: PAGE, ...place }, signal });
    yield answer.body;
    const next = nextQuery(answer.headers);
    place = next && { cursor: next.get('cursor'), after: next.get('after') };
  } while (place !== null);
}

/** Returns all agents that match, in the order of the API. */
export async function allAgents(api: ApiClient, query: AgentQuery): Promise<readonly Agent[]> {
  const all: Agent[] = [];
  for await (const page of agentPages(api, query)) all.push(...page);
  return all;
}
