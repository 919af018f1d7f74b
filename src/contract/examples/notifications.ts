/** Recorded by `test/api/examples.test.ts`: examples of the operations about notifications. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listNotifications: {
    query: {
      limit: '2',
    },
    status: 200,
    answer: {
      notifications: [
        {
          id: '01M8GBDPATA8MD114C54FWH30X',
          event_id: '01M8GBDPASGVPD0C65F79EV2YG',
          event_type: 'drift.detected',
          severity: 'warning',
          summary: 'web-01 has drifted from what was applied: 1 of 2 resources differ',
          timestamp_ms: 1795845183833,
          read: false,
        },
        {
          id: '01M8GBDP2RM423QPH4BWQG7E20',
          event_id: '01M8GBDP2RM423QPH4BWQG7E1Z',
          event_type: 'rollout.failed',
          severity: 'warning',
          summary: 'a rollout on 1 agent has failed: 1 agent did not succeed',
          timestamp_ms: 1795845183576,
          read: false,
        },
      ],
      unread_count: 16,
    },
  },
  readAllNotifications: {
    status: 204,
  },
  readNotification: {
    params: {
      id: '01M8GBDPATA8MD114C54FWH30X',
    },
    status: 204,
  },
};
