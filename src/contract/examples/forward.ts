/** Recorded by `test/api/examples.test.ts`: examples of the operations about forward. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  openForward: {
    params: {
      node_id: 'a47feb1d70ef655cf8f556426dd0854b',
    },
    body: {
      targets: [
        {
          host: 'localhost',
          port: 5432,
        },
      ],
    },
    status: 200,
    answer: {
      session_id: '01M8GCXKQ9Y5Z6Y2N9H4HKC5CG',
      ws_url: 'wss://orch.example.org:4747/api/v1/forward/01M8GCXKQ9Y5Z6Y2N9H4HKC5CG/stream?ticket=TICKET',
    },
  },
  openSshProxy: {
    params: {
      node_id: 'a47feb1d70ef655cf8f556426dd0854b',
    },
    body: {
      port: 22,
    },
    status: 200,
    answer: {
      session_id: '01M8GCXKSJEAFHYBEKEYD0KB21',
      ws_url: 'wss://orch.example.org:4747/api/v1/forward/01M8GCXKSJEAFHYBEKEYD0KB21/stream?ticket=TICKET',
    },
  },
  openCopy: {
    params: {
      node_id: 'a47feb1d70ef655cf8f556426dd0854b',
    },
    body: {
      direction: 'read',
      paths: ['/var/log/syslog'],
    },
    status: 200,
    answer: {
      session_id: '01M8H4QEZ3QC2QZKDMWMRFNQTK',
      ws_url: 'wss://orch.example.org:4747/api/v1/forward/01M8H4QEZ3QC2QZKDMWMRFNQTK/stream?ticket=TICKET',
    },
  },
};
