/** Measurements as operators read them. */
import type { MetricsHistory, NodeMetrics } from '../../src/contract/metrics.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { MetricsSample } from '../../src/kernel/schema.js';
import type { Queryable } from '../database/schema.js';
import { findAgent } from '../fleet/agent-store.js';
import { latestSamples, listSamples, type MetricsRow } from './metrics-store.js';

export interface HistoryQuery {
  /** Unix seconds, inclusive, by the clock of the orchestrator. */
  readonly since?: number | null | undefined;
  readonly limit: number;
  /** Unix milliseconds, exclusive: when the oldest sample of a page was received. */
  readonly before?: number | null | undefined;
}

export interface HistoryPage {
  readonly history: MetricsHistory;
  /** `before` of the page with older samples; null when there are none. */
  readonly next: number | null;
}

export class MetricsReader {
  private readonly db: Queryable;
  private readonly clock: Clock;

  constructor({ db, clock }: { readonly db: Queryable; readonly clock: Clock }) {
    this.db = db;
    this.clock = clock;
  }

  /** The newest samples, oldest first; null when there are none. Throws `agent_not_found`. */
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

  /** Null when there is none. Throws `agent_not_found`. */
  async latest(nodeId: string): Promise<MetricsSample | null> {
    await this.require(nodeId);
    const [row] = await listSamples(this.db, { nodeId, from: 0, to: this.clock.now(), limit: 1 });
    return row === undefined ? null : sampleOf(row);
  }

  /** Of every agent that has one. */
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
