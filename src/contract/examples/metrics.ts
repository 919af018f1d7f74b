/** Recorded by `test/api/examples.test.ts`: examples of the operations about metrics. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  getMetrics: {
    params: {
      node_id: '3d480af8ff014fe595dbb4008650d659',
    },
    query: {
      limit: '5',
    },
    status: 200,
    answer: {
      node_id: '3d480af8ff014fe595dbb4008650d659',
      samples: [
        {
          collected_at: 1795845179,
          cpu_usage: null,
          memory_used: 3347668992,
          memory_total: 25276514304,
          disk_used: 25504026624,
          disk_total: 270553174016,
          uptime: 5531,
        },
      ],
    },
  },
  getLatestMetrics: {
    params: {
      node_id: '3d480af8ff014fe595dbb4008650d659',
    },
    status: 200,
    answer: {
      collected_at: 1795845179,
      cpu_usage: null,
      memory_used: 3347668992,
      memory_total: 25276514304,
      disk_used: 25504026624,
      disk_total: 270553174016,
      uptime: 5531,
    },
  },
  listLatestMetrics: {
    status: 200,
    answer: [
      {
        node_id: '3d480af8ff014fe595dbb4008650d659',
        sample: {
          collected_at: 1795845179,
          cpu_usage: null,
          memory_used: 3347668992,
          memory_total: 25276514304,
          disk_used: 25504026624,
          disk_total: 270553174016,
          uptime: 5531,
        },
      },
    ],
  },
  getOwnMetrics: {
    status: 200,
    answer:
      '# HELP process_cpu_user_seconds_total Total user CPU time spent in seconds.\n# TYPE process_cpu_user_seconds_total counter\nprocess_cpu_user_seconds_total 1.087936\n\n# HELP process_cpu_system_seconds_total Total system CPU time spent in seconds.\n# TYPE process_cpu_system_seconds_total counter\nprocess_cpu_system_seconds_total 0.101483\n\n# HELP process_cpu_seconds_total Total user and system CPU time sp',
  },
};
