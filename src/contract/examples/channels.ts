/** Recorded by `test/api/examples.test.ts`: examples of the operations about channels. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listChannels: {
    status: 200,
    answer: [
      {
        id: '01M8GBDSJSZNJJEHVATEFEJ1HT',
        name: 'ops',
        channel_type: 'webhook',
        config: {
          url: 'https://hooks.example.org/orch',
          secret: '********',
        },
        events: [],
        min_severity: 'info',
        created_at: 1795845187,
        created_by: 'f73949d1c67ece1c80aac5a580b586d4',
        disabled_at: null,
        paused_until: null,
        last_attempt: null,
      },
    ],
  },
  createChannel: {
    body: {
      channel_type: 'webhook',
      name: 'ops',
      config: {
        url: 'https://hooks.example.org/orch',
        secret: 'whsec_c2VjcmV0',
      },
    },
    status: 201,
    answer: {
      id: '01M8GBDSJSZNJJEHVATEFEJ1HT',
      name: 'ops',
      channel_type: 'webhook',
      config: {
        url: 'https://hooks.example.org/orch',
        secret: '********',
      },
      events: [],
      min_severity: 'info',
      created_at: 1795845187,
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      disabled_at: null,
      paused_until: null,
      last_attempt: null,
    },
  },
  getChannel: {
    params: {
      id: '01M8GBDSJSZNJJEHVATEFEJ1HT',
    },
    status: 200,
    answer: {
      id: '01M8GBDSJSZNJJEHVATEFEJ1HT',
      name: 'ops',
      channel_type: 'webhook',
      config: {
        url: 'https://hooks.example.org/orch',
        secret: '********',
      },
      events: [],
      min_severity: 'info',
      created_at: 1795845187,
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      disabled_at: null,
      paused_until: null,
      last_attempt: null,
    },
  },
  updateChannel: {
    params: {
      id: '01M8GBDSJSZNJJEHVATEFEJ1HT',
    },
    body: {
      events: ['drift.*'],
      min_severity: 'info',
    },
    status: 200,
    answer: {
      id: '01M8GBDSJSZNJJEHVATEFEJ1HT',
      name: 'ops',
      channel_type: 'webhook',
      config: {
        url: 'https://hooks.example.org/orch',
        secret: '********',
      },
      events: ['drift.*'],
      min_severity: 'info',
      created_at: 1795845187,
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      disabled_at: null,
      paused_until: null,
      last_attempt: null,
    },
  },
  removeChannel: {
    params: {
      id: '01M8GBDSJSZNJJEHVATEFEJ1HT',
    },
    status: 204,
  },
  testChannel: {
    params: {
      id: '01M8GBDSJSZNJJEHVATEFEJ1HT',
    },
    status: 200,
    answer: {
      delivered: true,
      status_code: 200,
      duration_ms: 12,
    },
  },
  listDeliveries: {
    params: {
      id: '01M8GBDSJSZNJJEHVATEFEJ1HT',
    },
    query: {
      limit: '2',
    },
    status: 200,
    answer: [],
  },
};
