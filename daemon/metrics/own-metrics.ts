/** The orchestrator's own metrics, in the Prometheus format. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { isFault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import type { EventType } from '../core/domain-event.js';
import type { OpenDatabase } from '../database/database.js';
import { countOperationsByState } from '../engine/operations/operation-store.js';
import { countAgentsByStatus } from '../fleet/agent-store.js';
import { collectEventLoopLag, NEVER_MS } from './event-loop-lag.js';

const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

interface OwnMetricsOptions extends Pick<Core, 'db'> {
  readonly store: Pick<OpenDatabase, 'kind' | 'latencyMs'>;
  readonly version: string;
  /** Returns the number of approved agents that are connected. */
  readonly connected: () => number;
  /** Returns the number of open terminal sessions. */
  readonly terminals: () => number;
  /** Returns the number of scheduled drift checks that are late. */
  readonly overdueChecks: () => number;
  /** Returns the number of approved agents of each standing. */
  readonly standings: () => Readonly<Record<string, number>>;
  /** Returns the reasons why the orchestrator is degraded. */
  readonly problems: () => readonly { readonly code: string }[];
  /** Returns when the certificate of the API ends, in Unix milliseconds; null without TLS. */
  readonly certificateExpiresAt?: () => number | null;
  /** Length of each queue, in this process or in the store, by name. */
  readonly queues: Readonly<Record<string, () => number | Promise<number>>>;
}

/** An answered request. */
interface AnsweredRequest {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
}

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

export class OwnMetrics {
  private readonly registry = new Registry();
  private readonly requests: Histogram;
  private readonly events: Counter;

  constructor({
    db,
    store,
    version,
    connected,
    terminals,
    overdueChecks,
    standings,
    problems,
    certificateExpiresAt,
    queues,
  }: OwnMetricsOptions) {
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: NEVER_MS });
    // Gauges with the names of counters, whose numbers the metrics by type have as well.
    for (const name of MISNAMED) this.registry.removeSingleMetric(name);
    collectEventLoopLag(this.registry);
    new Gauge({ name: 'orch_info', help: 'The version of the orchestrator', labelNames: ['version'], registers }).set(
      { version },
      1,
    );
    new Gauge({
      name: 'orch_agents',
      help: 'Agents by approval status',
      labelNames: ['status'],
      registers,
      collect() {
        return fromStore(this, async () => {
          const counts = await countAgentsByStatus(db);
          for (const status of ['pending', 'approved', 'rejected']) this.set({ status }, counts.get(status) ?? 0);
        });
      },
    });
    new Gauge({
      name: 'orch_agents_connected',
      help: 'Approved agents that are connected',
      registers,
      collect() {
        this.set(connected());
      },
    });
    new Gauge({
      name: 'orch_agents_standing',
      help: 'Approved agents by standing',
      labelNames: ['standing'],
      registers,
      collect() {
        for (const [standing, count] of Object.entries(standings())) this.set({ standing }, count);
      },
    });
    new Gauge({
      name: 'orch_terminal_sessions',
      help: 'Terminal sessions and commands that are open',
      registers,
      collect() {
        this.set(terminals());
      },
    });
    new Gauge({
      name: 'orch_drift_checks_overdue',
      help: 'Scheduled drift checks of connected agents that are late, because all places are taken',
      registers,
      collect() {
        this.set(overdueChecks());
      },
    });
    new Gauge({
      name: 'orch_operations',
      help: 'Operations in the store by state',
      labelNames: ['state'],
      registers,
      collect() {
        return fromStore(this, async () => {
          const counts = await countOperationsByState(db);
          this.reset();
          for (const [state, count] of counts) this.set({ state }, count);
        });
      },
    });
    new Gauge({
      name: 'orch_degraded',
      help: '1 for each reason for which the orchestrator is degraded, beside a disk with little room',
      labelNames: ['reason'],
      registers,
      collect() {
        this.reset();
        for (const { code } of problems()) this.set({ reason: code }, 1);
      },
    });
    new Gauge({
      name: 'orch_api_certificate_expires',
      help: 'Unix time in seconds at which the certificate of the API ends; absent without TLS',
      registers,
      collect() {
        const at = certificateExpiresAt?.() ?? null;
        this.reset();
        if (at !== null) this.set(at / 1000);
      },
    });
    new Gauge({
      name: 'orch_queue_length',
      help: 'Items waiting for work, by queue',
      labelNames: ['queue'],
      registers,
      collect() {
        return fromStore(this, async () => {
          for (const [queue, length] of Object.entries(queues)) this.set({ queue }, await length());
        });
      },
    });
    new Gauge({
      name: 'orch_store_up',
      help: '1 while the store answers, 0 while its database cannot be reached',
      labelNames: ['kind'],
      registers,
      collect() {
        this.set({ kind: store.kind }, store.latencyMs() === null ? 0 : 1);
      },
    });
    if (store.kind === 'postgres') {
      new Gauge({
        name: 'orch_store_latency_seconds',
        help: 'Round-trip time to the database of the store, measured each second; absent while it does not answer',
        labelNames: ['kind'],
        registers,
        collect() {
          this.reset();
          const ms = store.latencyMs();
          if (ms !== null) this.set({ kind: store.kind }, ms / 1000);
        },
      });
    }
    this.events = new Counter({
      name: 'orch_events_total',
      help: 'Audit events since the start',
      labelNames: ['type'],
      registers,
    });
    this.requests = new Histogram({
      name: 'orch_http_request_duration_seconds',
      help: 'Time to answer requests of the API',
      labelNames: ['route', 'method', 'status'],
      buckets: BUCKETS,
      registers,
    });
  }

  /** Media type of `text`. */
  get contentType(): string {
    return this.registry.contentType;
  }

  countEvent(type: EventType): void {
    this.events.inc({ type });
  }

  answered({ route, method, status, seconds }: AnsweredRequest): void {
    this.requests.observe({ route, method, status }, seconds);
  }

  /** Returns all current values in the Prometheus text format 0.0.4. */
  text(): Promise<string> {
    return this.registry.metrics();
  }
}

/** Sets values that are in the store. While it does not answer, the metric has none, and all others are still given. */
async function fromStore(gauge: Gauge, set: () => Promise<void>): Promise<void> {
  try {
    await set();
  } catch (error) {
    if (!isFault(error, 'store_unavailable')) throw error;
    gauge.reset();
  }
}
