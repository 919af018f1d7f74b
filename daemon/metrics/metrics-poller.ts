/** Polls every connected agent for metrics, spread over the interval, and stores the samples in batches. */
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { MetricsSample } from '../../src/kernel/schema.js';
import type { Service } from '../../src/kernel/service.js';
import type { Settings } from '../../src/settings/serve.js';
import type { OrchestratorMessage } from '../../src/wire/messages.js';
import type { Core } from '../core/core.js';
import type { NewRow } from '../database/schema.js';
import { deleteSamplesBefore, insertSamples } from './metrics.js';

/** Connections to the agents. */
interface MetricsLink {
  /** Returns the approved agents that are connected. */
  connected(): Iterable<NodeId>;
  /** Sends messages to an agent. Returns false when it is not connected. */
  send(nodeId: NodeId, messages: readonly OrchestratorMessage[]): boolean;
}

interface MetricsPollerOptions extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'logger'> {
  readonly link: MetricsLink;
  /** Returns the current schedule, in milliseconds. */
  readonly schedule: () => { readonly interval: number; readonly retention: number };
  /** Returns a random number, uniform in [0, 1). */
  readonly random: () => number;
}

/** An answer received over the link. */
interface MetricsAnswer {
  readonly request_id: number;
  readonly sample: MetricsSample | null;
}

/** Interval in milliseconds at which agents are polled and samples are stored. */
const TICK = 1_000;
/** Maximum samples deleted in one transaction. */
const PRUNED_AT_ONCE = 5_000;
const REQUESTS = 1_000_000;
/** Unanswered requests remembered per agent. An answer may come long after the next request. */
const OUTSTANDING = 64;
/** Maximum samples kept while the store cannot be written; the oldest are dropped first. */
const KEPT = 20_000;

export class MetricsPoller implements Service {
  readonly name = 'metrics';
  private readonly options: MetricsPollerOptions;
  /** Time of each connected agent's next poll, on the monotonic clock. */
  private due = new Map<NodeId, number>();
  /** IDs of the unanswered requests of each agent, oldest first. */
  private readonly asked = new Map<NodeId, Set<number>>();
  private waiting: NewRow<'metrics_samples'>[] = [];
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

  /** Queues the sample of an answer. Throws `protocol_violation` for an answer without a request. */
  receive(nodeId: NodeId, { request_id: requestId, sample }: MetricsAnswer): void {
    if (this.asked.get(nodeId)?.delete(requestId) !== true) {
      throw new Fault('protocol_violation', 'the peer sent metrics without a request');
    }
    if (sample !== null) this.waiting.push({ node_id: nodeId, received_at: this.options.clock.now(), ...sample });
  }

  /** Deletes samples older than the retention, in batches. */
  async prune(): Promise<void> {
    const { db, ageTime, schedule } = this.options;
    const before = ageTime() - schedule().retention;
    while ((await deleteSamplesBefore(db, before, PRUNED_AT_ONCE)) >= PRUNED_AT_ONCE);
  }

  private tick(): void {
    this.ask();
    this.store();
  }

  /**
   * Polls the agents that are due. A newly connected agent is polled at once and then at a random offset, which
   * spreads the load.
   */
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
      // `send` returns false for agents whose protocol version lacks the request.
      if (link.send(nodeId, [{ type: 'metrics_request', request_id: this.requests }]))
        this.expect(nodeId, this.requests);
    }
    for (const nodeId of this.asked.keys()) if (!next.has(nodeId)) this.asked.delete(nodeId);
    this.due = next;
  }

  private expect(nodeId: NodeId, requestId: number): void {
    const outstanding = this.asked.get(nodeId) ?? new Set();
    this.asked.set(nodeId, outstanding.add(requestId));
    const [oldest] = outstanding;
    if (outstanding.size > OUTSTANDING && oldest !== undefined) outstanding.delete(oldest);
  }

  private store(): void {
    if (this.waiting.length === 0) return;
    const samples = this.waiting;
    this.waiting = [];
    const { db } = this.options;
    this.storing = this.storing
      .then(() => db.transaction().execute((tx) => insertSamples(tx, samples)))
      .catch((error: unknown) => this.keep(samples, error));
  }

  /** Keeps samples that could not be stored for the next attempt. */
  private keep(samples: readonly NewRow<'metrics_samples'>[], error: unknown): void {
    const all = [...samples, ...this.waiting];
    this.waiting = all.slice(-KEPT);
    const reason = messageOf(error);
    this.options.logger.error('metrics were not stored yet', { reason, dropped: all.length - this.waiting.length });
  }
}

/** Reads the schedule from the settings, in milliseconds. */
export const metricsSchedule = (settings: Settings) => ({
  interval: settings['metrics.poll_interval'] * 1000,
  retention: settings['metrics.retention'] * 1000,
});
