/** Lists that come in pages: each names the next page in its `Link` header until everything has come. */
import { expect } from 'vitest';
import type { Call, World } from '../world.js';

type Row = Readonly<Record<string, unknown>>;

interface PagedList {
  /** Records of an answer; without it the answer is the list. */
  readonly member?: string;
  readonly key: string;
}

/** All lists with pages. A test compares them with the document. */
export const PAGED: Readonly<Record<string, PagedList>> = {
  listAgents: { key: 'node_id' },
  listOperations: { member: 'operations', key: 'operation_id' },
  listAgentOperations: { member: 'operations', key: 'operation_id' },
  listRollouts: { member: 'rollouts', key: 'rollout_id' },
  listDrift: { member: 'records', key: 'drift_id' },
  listAgentDrift: { member: 'records', key: 'drift_id' },
  listNotifications: { member: 'notifications', key: 'id' },
  listTerminals: { key: 'session_id' },
  listAuditEvents: { member: 'events', key: 'id' },
  getMetrics: { member: 'samples', key: 'sampled_at' },
  listDeliveries: { key: 'id' },
};

/** Operations whose `limit` bounds an answer that has no further pages. */
export const WITHOUT_PAGES = ['searchTerminals'];

const nextOf = (headers: Readonly<Record<string, unknown>>): string | undefined =>
  /^<([^>]+)>; rel="next"$/.exec(String(headers.link))?.[1];

/**
 * Reads a list at once, then by following its links. Returns the number of pages.
 * @param params of the path; the connected agent without them
 */
export async function followPages(
  world: World,
  id: string,
  params: NonNullable<Call['params']> = { node_id: world.agents.connected },
): Promise<number> {
  const list = PAGED[id] as PagedList;
  const page = async (query: Readonly<Record<string, string>>) => {
    const { json, headers } = await world.call(id, { params, query });
    const rows: readonly Row[] = list.member === undefined ? json : json[list.member];
    return { keys: rows.map((row) => row[list.key]), next: nextOf(headers) };
  };
  const whole = await page({ limit: '500' });
  const limit = String(Math.max(1, Math.ceil(whole.keys.length / 3)));
  const found: unknown[] = [];
  let query: Readonly<Record<string, string>> | null = { limit };
  let pages = 0;
  // Records that come meanwhile may make further pages.
  for (; query !== null && pages < 50; pages += 1) {
    const { keys, next } = await page(query);
    expect(keys.length, id).toBeLessThanOrEqual(Number(limit));
    found.push(...keys);
    query = next === undefined ? null : Object.fromEntries(new URL(next, world.base).searchParams);
  }
  if (whole.next === undefined) expect(found, id).toEqual(expect.arrayContaining(whole.keys));
  return pages;
}
