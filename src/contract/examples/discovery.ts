/** Recorded by `test/api/examples.test.ts`: examples of the operations about discovery. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  discover: {
    body: {
      target: '192.0.2.10:9',
    },
    status: 200,
    answer: {
      sent: true,
      targets: ['192.0.2.10:9'],
    },
  },
};
