/** Recorded by `test/api/examples.test.ts`: examples of the operations about audit. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listAuditEvents: {
    query: {
      category: 'agent',
      limit: '2',
    },
    status: 200,
    answer: {
      events: [
        {
          id: '01M8GBDK3N7DVHF8CGZ95NS7G0',
          event_type: 'agent.tags_changed',
          severity: 'info',
          summary: 'root changed the tags site of agent web-01',
          timestamp: '2026-11-28T05:53:00.533Z',
          metadata: {
            after: {
              role: 'web',
            },
            before: {
              role: 'web',
              site: 'office',
            },
            request_id: '01M8GBDK3KNWN1MYNB1D9A73DK',
          },
          actor: {
            id: 'f73949d1c67ece1c80aac5a580b586d4',
            name: 'root',
            type: 'operator',
          },
          target: {
            id: '3d480af8ff014fe595dbb4008650d659',
            name: 'web-01',
            type: 'agent',
          },
        },
        {
          id: '01M8GBDK2BWD5GXZ0ZPP4SQGNF',
          event_type: 'agent.tags_changed',
          severity: 'info',
          summary: 'root changed the tags site of agent web-01',
          timestamp: '2026-11-28T05:53:00.491Z',
          metadata: {
            after: {
              role: 'web',
              site: 'office',
            },
            before: {
              role: 'web',
              site: 'lab',
            },
            request_id: '01M8GBDK290PTT2KTF6CMNDVEZ',
          },
          actor: {
            id: 'f73949d1c67ece1c80aac5a580b586d4',
            name: 'root',
            type: 'operator',
          },
          target: {
            id: '3d480af8ff014fe595dbb4008650d659',
            name: 'web-01',
            type: 'agent',
          },
        },
      ],
      has_more: true,
      next_cursor: '01M8GBDK2BWD5GXZ0ZPP4SQGNF',
    },
  },
  pruneAuditEvents: {
    query: {
      before: '2020-01-01T00:00:00Z',
    },
    status: 200,
    answer: {
      deleted: 0,
    },
  },
  getAuditRetention: {
    status: 200,
    answer: {
      retention_days: 90,
    },
  },
  setAuditRetention: {
    body: {
      retention_days: 90,
    },
    status: 200,
    answer: {
      retention_days: 90,
    },
  },
  verifyAudit: {
    status: 200,
    answer: {
      intact: true,
      events: 93,
      first_seq: 1,
      last_seq: 93,
      checkpoints: 0,
      pruned: null,
      checkpoint: {
        epoch: 1,
        seq: 93,
        hash: 'ffb0ca279e747017dca429ac0f1cf59f49a9ce217eca149e7352fbb5be7ad8e9',
        signed_at: '2026-11-28T05:53:09.146Z',
        text: 'orch-checkpoint-v1.1.93.1795845189146.ffb0ca279e747017dca429ac0f1cf59f49a9ce217eca149e7352fbb5be7ad8e9.7241a52b8cc358e4762dabe991d03bad7de141965bf6fd2fb6adc3852f6072a8.9CZfFVXlMjHrXWsbCoHIeksr5mijuTG3tSEGOnPsQMAeiRHYXAKh_bnfLdSRUkj56ApZPH-kOx2uD35tsQ5iDQ',
      },
      public_key: '7241a52b8cc358e4762dabe991d03bad7de141965bf6fd2fb6adc3852f6072a8',
      since: null,
      problem: null,
    },
  },
  streamEvents: {
    query: {
      category: 'agent',
      after: '2020-01-01T00:00:00Z',
    },
    status: 200,
    answer: 'retry: 2000\n\n',
  },
};
