/** Recorded by `test/api/examples.test.ts`: examples of the operations about tags. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listTags: {
    status: 200,
    answer: {
      tags: {
        role: ['web'],
        site: ['office'],
      },
    },
  },
  replaceTags: {
    params: {
      node_id: '3d480af8ff014fe595dbb4008650d659',
    },
    body: {
      tags: {
        role: 'web',
        site: 'lab',
      },
    },
    status: 204,
  },
  setTag: {
    params: {
      node_id: '3d480af8ff014fe595dbb4008650d659',
      key: 'site',
    },
    body: {
      value: 'office',
    },
    status: 204,
  },
  removeTag: {
    params: {
      node_id: '3d480af8ff014fe595dbb4008650d659',
      key: 'site',
    },
    status: 204,
  },
};
