/** Handlers of the routes of measurements. */
import { METRICS_LIMIT, type metricsRoutes } from '../../src/contract/metrics.js';
import type { MetricsReader } from '../metrics/metrics.js';
import type { OwnMetrics } from '../metrics/own-metrics.js';
import type { HandlersFor } from './handler.js';

export interface MetricsServices {
  readonly reader: MetricsReader;
  readonly own: OwnMetrics;
}

export const metricsHandlers = ({ reader, own }: MetricsServices): HandlersFor<typeof metricsRoutes> => ({
  getMetrics: async ({ params, query }) => {
    const limit = query.limit ?? METRICS_LIMIT.standard;
    const history = await reader.history(params.node_id, { since: query.since, limit });
    return history === null ? { status: 204, body: undefined } : { status: 200, body: history };
  },
  getLatestMetrics: async ({ params }) => {
    const sample = await reader.latest(params.node_id);
    return sample === null ? { status: 204, body: undefined } : { status: 200, body: sample };
  },
  listLatestMetrics: async () => ({ status: 200, body: await reader.latestOfAll() }),
  getOwnMetrics: async () => ({ status: 200, body: await own.text() }),
});
