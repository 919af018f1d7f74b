/** Recorded by `test/api/examples.test.ts`: examples of the operations about assignments. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listAssignments: {
    status: 200,
    answer: [
      {
        name: 'web',
        modules: ['motd'],
        selector: 'tag.role=web',
        description: 'web servers',
        created_at: 1795845181,
        created_by: 'f73949d1c67ece1c80aac5a580b586d4',
        mode: 'manual',
        stopped_reason: null,
        values: null,
      },
    ],
  },
  createAssignment: {
    body: {
      name: 'web',
      modules: ['motd'],
      selector: 'tag.role=web',
      description: 'web servers',
      mode: 'manual',
    },
    status: 201,
    answer: {
      name: 'web',
      modules: ['motd'],
      selector: 'tag.role=web',
      description: 'web servers',
      created_at: 1795845181,
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      mode: 'manual',
      stopped_reason: null,
      values: null,
    },
  },
  getAssignment: {
    params: {
      name: 'web',
    },
    status: 200,
    answer: {
      name: 'web',
      modules: ['motd'],
      selector: 'tag.role=web',
      description: 'web servers',
      created_at: 1795845181,
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      mode: 'manual',
      stopped_reason: null,
      values: null,
      agents: [
        {
          node_id: '3d480af8ff014fe595dbb4008650d659',
          name: 'web-01',
        },
      ],
    },
  },
  updateAssignment: {
    params: {
      name: 'web',
    },
    body: {
      description: 'all web servers',
    },
    status: 200,
    answer: {
      name: 'web',
      modules: ['motd'],
      selector: 'tag.role=web',
      description: 'all web servers',
      created_at: 1795845181,
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      mode: 'manual',
      stopped_reason: null,
      values: null,
    },
  },
  resumeAssignment: {
    params: {
      name: 'web',
    },
    status: 200,
    answer: {
      name: 'web',
      modules: ['motd'],
      selector: 'tag.role=web',
      description: 'all web servers',
      created_at: 1795845181,
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      mode: 'manual',
      stopped_reason: null,
      values: null,
    },
  },
  removeAssignment: {
    params: {
      name: 'web',
    },
    status: 204,
  },
  planAssignment: {
    params: {
      name: 'web',
    },
    body: {
      concurrency: 2,
    },
    status: 200,
    answer: {
      assignment: 'web',
      selector: 'tag.role=web',
      rollout_id: '01M8GBDMP7QA936K934SNW9WYN',
      has_changes: true,
      results: [
        {
          node_id: '3d480af8ff014fe595dbb4008650d659',
          name: 'web-01',
          status: 'succeeded',
          operation_id: null,
          summary: {
            total: 2,
            unchanged: 0,
            pending: 2,
            changed: 0,
            failed: 0,
            skipped: 0,
            removed: 0,
          },
          error: null,
        },
      ],
      summary: {
        agents: 1,
        succeeded: 1,
        failed: 0,
        unreachable: 0,
        skipped: 0,
      },
    },
  },
  applyAssignment: {
    params: {
      name: 'web',
    },
    body: {
      concurrency: 2,
      max_failures: 1,
    },
    status: 200,
    answer: {
      assignment: 'web',
      selector: 'tag.role=web',
      rollout_id: '01M8GBDNC7K1NWS1Z3FX6GQ1HH',
      has_changes: false,
      results: [
        {
          node_id: '3d480af8ff014fe595dbb4008650d659',
          name: 'web-01',
          operation_id: '01M8GBDNFMVA98S4PQSV7WS303',
          summary: {
            total: 2,
            unchanged: 2,
            pending: 0,
            changed: 0,
            failed: 0,
            skipped: 0,
            removed: 0,
          },
          error: null,
          status: 'succeeded',
        },
      ],
      summary: {
        agents: 1,
        succeeded: 1,
        failed: 0,
        unreachable: 0,
        skipped: 0,
      },
    },
  },
};
