/** Recorded by `test/api/examples.test.ts`: examples of the operations about enrolment tokens. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listEnrolmentTokens: {
    status: 200,
    answer: [
      {
        id: '01M8GBDGX53T99B61T9ST0349E',
        created_by: 'f73949d1c67ece1c80aac5a580b586d4',
        created_at: 1795845178,
        expires_at: 1795848778,
        uses: 5,
        uses_left: 5,
        tags: {
          role: 'web',
        },
        auto_approve: false,
        last_used_at: null,
      },
    ],
  },
  createEnrolmentToken: {
    body: {
      ttl_secs: 3600,
      uses: 5,
      tags: {
        role: 'web',
      },
    },
    status: 201,
    answer: {
      id: '01M8GBDGX53T99B61T9ST0349E',
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      created_at: 1795845178,
      expires_at: 1795848778,
      uses: 5,
      uses_left: 5,
      tags: {
        role: 'web',
      },
      auto_approve: false,
      last_used_at: null,
      token: 'SESSION-OR-ENROLMENT-TOKEN',
      agent_host: '192.0.2.10',
      agent_port: 46621,
      reachable_host: '192.0.2.10',
      install: null,
    },
  },
  revokeEnrolmentToken: {
    params: {
      id: '01M8GBDGX53T99B61T9ST0349E',
    },
    status: 204,
  },
};
