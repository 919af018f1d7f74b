/** Recorded by `test/api/examples.test.ts`: examples of the operations about auth. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  createChallenge: {
    body: {
      public_key: 'ebfa3688002eed90f9675e420ff5851e342e6b21edb6866d3eccd8ee9d4446fa',
    },
    status: 200,
    answer: {
      nonce: '6f665dd124a72a9bd8e545f05c9e50954752733ad2909adf686d5c1a84eb4c0f',
    },
  },
  verifyChallenge: {
    body: {
      public_key: 'ebfa3688002eed90f9675e420ff5851e342e6b21edb6866d3eccd8ee9d4446fa',
      signature:
        'fad83160b7128d4b74205f3b22b1bf6d562edee157b583d3a29444f5077d548bfcfa757c8cbaf3d0afd4f7d0a1bf8400ca91c3d62672c9a9bd842867f0f2f50b',
    },
    status: 200,
    answer: {
      token: 'SESSION-OR-ENROLMENT-TOKEN',
      expires_at: 1795848778,
    },
  },
  getSession: {
    status: 200,
    answer: {
      operator: {
        operator_id: 'ea6f49db28f8447b959d9910247135f1',
        username: 'mara',
        role: 'operator',
        bootstrap: false,
        added_at: 1795845177,
        added_by: 'f73949d1c67ece1c80aac5a580b586d4',
        removed_at: null,
        removed_by: null,
        public_key: 'ebfa3688002eed90f9675e420ff5851e342e6b21edb6866d3eccd8ee9d4446fa',
      },
      expires_at: 1795848778,
    },
  },
  endSession: {
    status: 204,
  },
};
