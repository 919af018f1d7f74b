/** Handlers of the routes of measurements. */
import { METRICS_LIMIT, type metricsRoutes } from '../../src/contract/metrics.js';
import { clampLimit } from '../../src/contract/shapes.js';
import type { HandlersFor } from '../http/handler.js';
import { linkTo } from '../http/query-string.js';
import type { MetricsReader } from './metrics.js';
import type { OwnMetrics } from './own-metrics.js';

export interface MetricsServices {
  readonly reader: MetricsReader;
  readonly own: OwnMetrics;
}

export const metricsHandlers = ({ reader, own }: MetricsServices): HandlersFor<typeof metricsRoutes> => ({
  getMetrics: async ({ params, query }) => {
    const limit = clampLimit(query.limit, METRICS_LIMIT.standard, METRICS_LIMIT.maximum);
    const page = await reader.history(params.node_id, { since: query.since, limit, before: query.cursor });
    if (page === null) return { status: 204, body: undefined };
    const { history, next: cursor } = page;
    const link = linkTo(`/agents/${params.node_id}/metrics`, { ...query, limit, cursor });
    return { status: 200, body: history, headers: cursor === null ? {} : link };
  },
  getLatestMetrics: async ({ params }) => {
    const sample = await reader.latest(params.node_id);
    return sample === null ? { status: 204, body: undefined } : { status: 200, body: sample };
  },
  listLatestMetrics: async () => ({ status: 200, body: await reader.latestOfAll() }),
  getOwnMetrics: async () => ({ status: 200, body: await own.text() }),
});
