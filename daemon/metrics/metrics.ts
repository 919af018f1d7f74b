/** Metrics of agents: the reader, the handlers and the stored samples. */

import {
  METRICS_LIMIT,
  type MetricsHistory,
  type metricsRoutes,
  type NodeMetrics,
} from '../../src/contract/metrics.js';
import { clampLimit } from '../../src/contract/shapes.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { MetricsSample } from '../../src/kernel/schema.js';
import type { NewRow, Queryable, Row } from '../database/schema.js';
import { findAgent } from '../fleet/agent-store.js';
import type { Machines } from '../fleet/machines.js';
import type { HandlersFor } from '../http/handler.js';
import { linkTo } from '../http/query-string.js';
import type { OwnMetrics } from './own-metrics.js';

interface HistoryQuery {
  /** Inclusive lower bound in Unix seconds, by the orchestrator's clock. */
  readonly since?: number | null | undefined;
  readonly limit: number;
  /** Exclusive upper bound in Unix milliseconds: the reception time of the oldest sample of the previous page. */
  readonly before?: number | null | undefined;
}

export interface HistoryPage {
  readonly history: MetricsHistory;
  /** Value of `before` for the page with older samples; null when there are none. */
  readonly next: number | null;
}

export class MetricsReader {
  private readonly db: Queryable;
  private readonly clock: Clock;

  constructor({ db, clock }: { readonly db: Queryable; readonly clock: Clock }) {
    this.db = db;
    this.clock = clock;
  }

  /** Returns the newest samples, oldest first, or null when there are none. Throws `agent_not_found`. */
  async history(nodeId: string, { since, limit, before }: HistoryQuery): Promise<HistoryPage | null> {
    await this.require(nodeId);
    const from = (since ?? 0) * 1000;
    const to = Math.min(this.clock.now(), (before ?? Number.MAX_SAFE_INTEGER) - 1);
    const read = await listSamples(this.db, { nodeId, from, to, limit: limit + 1 });
    if (read.length === 0) return null;
    const rows = read.slice(-limit);
    const next = read.length > limit ? (rows[0]?.received_at ?? null) : null;
    return { history: { node_id: nodeId, samples: rows.map(sampleOf) }, next };
  }

  /** Returns the newest sample since a time in Unix seconds, or null. Throws `agent_not_found`. */
  async latest(nodeId: string, since = 0): Promise<MetricsSample | null> {
    await this.require(nodeId);
    const [row] = await listSamples(this.db, { nodeId, from: since * 1000, to: this.clock.now(), limit: 1 });
    return row === undefined ? null : sampleOf(row);
  }

  /** Returns the newest sample of every agent that has one. */
  async latestOfAll(): Promise<NodeMetrics[]> {
    return (await latestSamples(this.db, this.clock.now())).map((row) => ({
      node_id: row.node_id,
      sample: sampleOf(row),
    }));
  }

  private async require(nodeId: string): Promise<void> {
    const agent = await findAgent(this.db, nodeId);
    if (agent === null) throw new Fault('agent_not_found', `there is no agent ${nodeId}`);
  }
}

const sampleOf = ({ node_id: _node, received_at: _received, ...sample }: MetricsRow): MetricsSample => sample;

interface MetricsServices {
  readonly reader: MetricsReader;
  readonly own: OwnMetrics;
  readonly machines: Machines;
}

export const metricsHandlers = ({ reader, own, machines }: MetricsServices): HandlersFor<typeof metricsRoutes> => ({
  getMetrics: async ({ params, query, rights }) => {
    const limit = clampLimit(query.limit, METRICS_LIMIT.standard, METRICS_LIMIT.maximum);
    const since = Math.max(query.since ?? 0, await machines.readableFrom(rights, params.node_id));
    const page = await reader.history(params.node_id, { since, limit, before: query.cursor });
    if (page === null) return { status: 204, body: undefined };
    const { history, next: cursor } = page;
    const link = linkTo(`/agents/${params.node_id}/metrics`, { ...query, limit, cursor });
    return { status: 200, body: history, headers: cursor === null ? {} : link };
  },
  getLatestMetrics: async ({ params, rights }) => {
    const sample = await reader.latest(params.node_id, await machines.readableFrom(rights, params.node_id));
    return sample === null ? { status: 204, body: undefined } : { status: 200, body: sample };
  },
  listLatestMetrics: async ({ rights }) => {
    const all = await reader.latestOfAll();
    if (!rights.isLimited) return { status: 200, body: all };
    const shown: NodeMetrics[] = [];
    for (const { nodeId } of await machines.all(rights)) {
      const sample = await reader.latest(nodeId, await machines.readableFrom(rights, nodeId));
      if (sample !== null) shown.push({ node_id: nodeId, sample });
    }
    return { status: 200, body: shown };
  },
  getOwnMetrics: async () => ({ status: 200, body: await own.text() }),
});

/** A stored sample; reception times are Unix milliseconds. */
type MetricsRow = Row<'metrics_samples'>;

/** Rows per statement: SQLite accepts 32,766 values. */
const CHUNK = 1_000;

/** Inserts samples. A second sample of an agent in the same millisecond is dropped. */
export async function insertSamples(db: Queryable, samples: readonly NewRow<'metrics_samples'>[]): Promise<void> {
  for (let at = 0; at < samples.length; at += CHUNK) {
    await db
      .insertInto('metrics_samples')
      .values(samples.slice(at, at + CHUNK))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

interface SampleFilter {
  readonly nodeId: string;
  /** Unix milliseconds, inclusive. */
  readonly from: number;
  /** Inclusive upper bound in Unix milliseconds; later samples were received while the clock was ahead. */
  readonly to: number;
  readonly limit: number;
}

/** Returns the newest samples, oldest first. */
async function listSamples(db: Queryable, { nodeId, from, to, limit }: SampleFilter): Promise<readonly MetricsRow[]> {
  const rows = await db
    .selectFrom('metrics_samples')
    .selectAll()
    .where('node_id', '=', nodeId)
    .where('received_at', '>=', from)
    .where('received_at', '<=', to)
    .orderBy('received_at', 'desc')
    .limit(limit)
    .execute();
  return rows.reverse();
}

/** Returns the newest sample of every agent that has one, received up to `to`. */
async function latestSamples(db: Queryable, to: number): Promise<readonly MetricsRow[]> {
  return db
    .selectFrom('metrics_samples as sample')
    .innerJoin('agents', 'agents.node_id', 'sample.node_id')
    .selectAll('sample')
    .where(({ eb, selectFrom }) =>
      eb(
        'sample.received_at',
        '=',
        selectFrom('metrics_samples as other')
          .select(({ fn }) => fn.max('other.received_at').as('newest'))
          .whereRef('other.node_id', '=', 'sample.node_id')
          .where('other.received_at', '<=', to),
      ),
    )
    .orderBy('sample.node_id')
    .execute();
}

/** Deletes about `limit` of the samples received before `time`, oldest first. Returns the number deleted. */
export async function deleteSamplesBefore(db: Queryable, time: number, limit: number): Promise<number> {
  const old = db.selectFrom('metrics_samples').select('received_at').where('received_at', '<', time);
  const edge = await old
    .orderBy('received_at')
    .offset(limit - 1)
    .limit(1)
    .executeTakeFirst();
  const until = edge === undefined ? time : edge.received_at + 1;
  const result = await db.deleteFrom('metrics_samples').where('received_at', '<', until).executeTakeFirst();
  return Number(result.numDeletedRows);
}
