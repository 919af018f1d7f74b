/** Measurements of agents' machines, and the orchestrator's own counters. */
import * as Type from 'typebox';
import { closed, MetricsSampleSchema, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { limitOf, NEXT_PAGE, NodeId, NodeParams, Seconds } from './shapes.js';

export const METRICS_LIMIT = { standard: 1_440, maximum: 10_000 } as const;

export const MetricsHistorySchema = closed({
  node_id: NodeId,
  samples: Type.Array(MetricsSampleSchema, { description: 'Measurements, oldest first' }),
});
export type MetricsHistory = Type.Static<typeof MetricsHistorySchema>;

export const NodeMetricsSchema = closed({ node_id: NodeId, sample: MetricsSampleSchema });
export type NodeMetrics = Type.Static<typeof NodeMetricsSchema>;

export const metricsRoutes = {
  getMetrics: route({
    id: 'getMetrics',
    summary:
      'The newest measurements of an agent, oldest first; a Link header names those before; 204 when there is none',
    tag: 'metrics',
    method: 'GET',
    path: '/agents/{node_id}/metrics',
    access: 'read',
    params: NodeParams,
    query: closed({
      since: optional(Seconds),
      limit: optional(limitOf(METRICS_LIMIT.standard, METRICS_LIMIT.maximum)),
      cursor: optional(
        Type.Integer({
          minimum: 0,
          description: 'Value from the Link header: measurements older than the previous page',
        }),
      ),
    }),
    answers: { 200: MetricsHistorySchema, 204: null },
    headers: NEXT_PAGE,
    faults: ['agent_not_found'],
  }),
  getLatestMetrics: route({
    id: 'getLatestMetrics',
    summary: 'The newest measurement of an agent; 204 when there is none',
    tag: 'metrics',
    method: 'GET',
    path: '/agents/{node_id}/metrics/latest',
    access: 'read',
    params: NodeParams,
    answers: { 200: MetricsSampleSchema, 204: null },
    faults: ['agent_not_found'],
  }),
  listLatestMetrics: route({
    id: 'listLatestMetrics',
    summary: 'The newest measurement of each agent',
    tag: 'metrics',
    method: 'GET',
    path: '/metrics/latest',
    access: 'read',
    grants: 'filtered',
    answers: { 200: Type.Array(NodeMetricsSchema) },
    faults: [],
  }),
  getOwnMetrics: route({
    id: 'getOwnMetrics',
    summary: "The orchestrator's own counters, for Prometheus; also with the token of the setting metrics_token",
    tag: 'metrics',
    method: 'GET',
    path: '/metrics',
    access: 'read',
    scrape: true,
    mediaType: 'text/plain; version=0.0.4; charset=utf-8',
    answers: { 200: Type.String() },
    faults: [],
  }),
} as const;
