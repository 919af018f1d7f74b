/** Recorded by `test/api/examples.test.ts`: examples of the operations about maintenance. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listMaintenanceWindows: {
    status: 200,
    answer: [
      {
        id: '01M8GBDSVQB0KJQ73NQDR3EYA3',
        reason: 'new disks',
        starts_at: 1795848787,
        ends_at: 1795852387,
        created_by: 'f73949d1c67ece1c80aac5a580b586d4',
        created_at: 1795845187,
        kind: 'pause',
        selector: null,
        assignments: [],
        status: 'scheduled',
      },
    ],
  },
  createMaintenanceWindow: {
    body: {
      reason: 'new disks',
      starts_at: 1795848787,
      ends_at: 1795852387,
    },
    status: 201,
    answer: {
      id: '01M8GBDSVQB0KJQ73NQDR3EYA3',
      reason: 'new disks',
      starts_at: 1795848787,
      ends_at: 1795852387,
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      created_at: 1795845187,
      kind: 'pause',
      selector: null,
      assignments: [],
      status: 'scheduled',
    },
  },
  getMaintenanceWindow: {
    params: {
      id: '01M8GBDSVQB0KJQ73NQDR3EYA3',
    },
    status: 200,
    answer: {
      id: '01M8GBDSVQB0KJQ73NQDR3EYA3',
      reason: 'new disks',
      starts_at: 1795848787,
      ends_at: 1795852387,
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      created_at: 1795845187,
      kind: 'pause',
      selector: null,
      assignments: [],
      status: 'scheduled',
    },
  },
  updateMaintenanceWindow: {
    params: {
      id: '01M8GBDSVQB0KJQ73NQDR3EYA3',
    },
    body: {
      ends_at: 1795855987,
    },
    status: 200,
    answer: {
      id: '01M8GBDSVQB0KJQ73NQDR3EYA3',
      reason: 'new disks',
      starts_at: 1795848787,
      ends_at: 1795855987,
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      created_at: 1795845187,
      kind: 'pause',
      selector: null,
      assignments: [],
      status: 'scheduled',
    },
  },
  removeMaintenanceWindow: {
    params: {
      id: '01M8GBDSVQB0KJQ73NQDR3EYA3',
    },
    status: 204,
  },
};
