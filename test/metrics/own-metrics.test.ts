/** The orchestrator's own counters, and who may scrape them. */
import { describe, expect, it } from 'vitest';
import { insertOperation } from '../../daemon/engine/operations/operation-store.js';
import { insertAgent } from '../../daemon/fleet/agent-store.js';
import { OwnMetrics } from '../../daemon/metrics/own-metrics.js';
import { agentRow, node, openStore, operationRow } from '../support/database.js';

describe('the counters', () => {
  it('are what the store and the queues hold at the moment, and what has happened since the start', async () => {
    const { db } = await openStore();
    await insertAgent(db, agentRow({ node_id: node('a'), name: 'a', status: 'approved' }));
    await insertAgent(db, agentRow({ node_id: node('b'), status: 'pending' }));
    let waiting = 3;
    let latency: number | null = 2;
    const own = new OwnMetrics({
      db,
      store: { kind: 'postgres', latencyMs: () => latency },
      version: '1.2.3',
      connected: () => 1,
      terminals: () => 2,
      overdueChecks: () => 4,
      standings: () => ({ behind: 5, in_sync: 6 }),
      problems: () => [{ code: 'clock_jumped' }],
      queues: { deliveries: async () => waiting },
    });
    own.countEvent('agent.approved');
    own.countEvent('agent.approved');
    own.answered({ route: 'getStatus', method: 'GET', status: 200, seconds: 0.004 });
    const text = await own.text();
    for (const line of [
      'orch_info{version="1.2.3"} 1',
      'orch_agents{status="approved"} 1',
      'orch_agents{status="pending"} 1',
      'orch_agents{status="rejected"} 0',
      'orch_agents_connected 1',
      'orch_agents_standing{standing="behind"} 5',
      'orch_agents_standing{standing="in_sync"} 6',
      'orch_terminal_sessions 2',
      'orch_drift_checks_overdue 4',
      'orch_queue_length{queue="deliveries"} 3',
      'orch_degraded{reason="clock_jumped"} 1',
      'orch_store_up{kind="postgres"} 1',
      'orch_store_latency_seconds{kind="postgres"} 0.002',
      'orch_events_total{type="agent.approved"} 2',
      'orch_http_request_duration_seconds_bucket{le="0.005",route="getStatus",method="GET",status="200"} 1',
      'orch_http_request_duration_seconds_bucket{le="0.0025",route="getStatus",method="GET",status="200"} 0',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
    expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m);
    for (const value of ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99']) {
      expect(text).toMatch(new RegExp(`^nodejs_eventloop_lag_${value}_seconds \\d`, 'm'));
    }
    waiting = 0;
    latency = null;
    await insertOperation(db, operationRow({ operation_id: 'OP', node_id: node('a'), state: 'running' }));
    const later = await own.text();
    expect(later).toContain('orch_queue_length{queue="deliveries"} 0');
    expect(later).toContain('orch_operations{state="running"} 1');
    expect(later).toContain('orch_store_up{kind="postgres"} 0');
    expect(later).not.toMatch(/^orch_store_latency_seconds/m);
  });
});
