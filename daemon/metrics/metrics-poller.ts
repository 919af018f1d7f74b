/** Asks every connected agent for its measurements, each in its own time, and stores the answers in batches. */

import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { MetricsSample } from '../../src/kernel/schema.js';
import type { Service } from '../../src/kernel/service.js';
import type { Settings } from '../../src/settings/serve.js';
import type { OrchestratorMessage } from '../../src/wire/messages.js';
import type { Core } from '../core/core.js';
import type { NewRow } from '../database/schema.js';
import { deleteSamplesBefore, insertSamples } from './metrics.js';

/** What it needs of whoever holds the connections. */
interface MetricsLink {
  /** Approved agents that are connected now. */
  connected(): Iterable<NodeId>;
  /** False when there is no such connection. */
  send(nodeId: NodeId, messages: readonly OrchestratorMessage[]): boolean;
}

interface MetricsPollerOptions extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'logger'> {
  readonly link: MetricsLink;
  /** Milliseconds; as they are now. */
  readonly schedule: () => { readonly interval: number; readonly retention: number };
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** An answer as it came over the link. */
interface MetricsAnswer {
  readonly request_id: number;
  readonly sample: MetricsSample | null;
}

/** How often it looks whom to ask, and stores what has come, in milliseconds. */
const TICK = 1_000;
/** Samples that are dropped in one transaction. */
const PRUNED_AT_ONCE = 5_000;
const REQUESTS = 1_000_000;

export class MetricsPoller implements Service {
  readonly name = 'metrics';
  private readonly options: MetricsPollerOptions;
  /** When each connected agent is asked next, by the monotonic clock. */
  private due = new Map<NodeId, number>();
  /** The question that an agent has not answered yet. */
  private readonly asked = new Map<NodeId, number>();
  private readonly waiting: NewRow<'metrics_samples'>[] = [];
  private timer: NodeJS.Timeout | undefined;
  private storing: Promise<void> = Promise.resolve();
  private requests = 0;

  constructor(options: MetricsPollerOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    this.timer = setInterval(() => this.tick(), TICK);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.store();
    await this.storing;
  }

  /** Throws `protocol_violation` for an answer that nobody has asked for. */
  receive(nodeId: NodeId, { request_id: requestId, sample }: MetricsAnswer): void {
    if (this.asked.get(nodeId) !== requestId) {
      throw new Fault('protocol_violation', 'the peer sent metrics that nobody has asked for');
    }
    this.asked.delete(nodeId);
    if (sample !== null) this.waiting.push({ node_id: nodeId, received_at: this.options.clock.now(), ...sample });
  }

  /** Drops what is older than the retention, in slices. */
  async prune(): Promise<void> {
    const { db, ageTime, schedule } = this.options;
    const before = ageTime() - schedule().retention;
    while ((await deleteSamplesBefore(db, before, PRUNED_AT_ONCE)) >= PRUNED_AT_ONCE);
  }

  private tick(): void {
    this.ask();
    this.store();
  }

  /** An agent that has just come is asked at once, then each in a time of its own, so that not all answer together. */
  private ask(): void {
    const { clock, link, random, schedule } = this.options;
    const { interval } = schedule();
    const now = clock.monotonic();
    const next = new Map<NodeId, number>();
    for (const nodeId of link.connected()) {
      const due = this.due.get(nodeId);
      if (due !== undefined && due > now) {
        next.set(nodeId, Math.min(due, now + interval));
        continue;
      }
      next.set(nodeId, now + (due === undefined ? interval * (0.5 + random() / 2) : interval));
      this.requests = (this.requests + 1) % REQUESTS;
      // An agent that is too old for the question is not sent it.
      if (link.send(nodeId, [{ type: 'metrics_request', request_id: this.requests }]))
        this.asked.set(nodeId, this.requests);
    }
    for (const nodeId of this.asked.keys()) if (!next.has(nodeId)) this.asked.delete(nodeId);
    this.due = next;
  }

  private store(): void {
    if (this.waiting.length === 0) return;
    const samples = this.waiting.splice(0);
    const { db, logger } = this.options;
    this.storing = this.storing
      .then(() => db.transaction().execute((tx) => insertSamples(tx, samples)))
      .catch((error: unknown) => logger.error('metrics were not stored', { reason: messageOf(error) }));
  }
}

/** Reads the schedule of measurements, in milliseconds. */
export const metricsSchedule = (settings: Settings) => ({
  interval: settings['metrics.poll_interval'] * 1000,
  retention: settings['metrics.retention'] * 1000,
});
