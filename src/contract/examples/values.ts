/** Recorded by `test/api/examples.test.ts`: examples of the operations about values. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listValueSets: {
    status: 200,
    answer: [
      {
        name: 'prod',
        revision: 1,
        sha256: 'c28fc1c7d3cb8478879123b7ec506b27db938f8f34fc90916bd80c65fd8a4704',
        uploaded_at: 1795845182,
        uploaded_by: 'f73949d1c67ece1c80aac5a580b586d4',
        modules: ['motd'],
      },
    ],
  },
  uploadValueSet: {
    body: {
      name: 'prod',
      content: 'values:\n  - when: {tag.role: web}\n    set: {motd: {greeting: welcome}}\n',
    },
    status: 201,
    answer: {
      name: 'prod',
      revision: 1,
      sha256: 'c28fc1c7d3cb8478879123b7ec506b27db938f8f34fc90916bd80c65fd8a4704',
      uploaded_at: 1795845182,
      uploaded_by: 'f73949d1c67ece1c80aac5a580b586d4',
      modules: ['motd'],
      changed: true,
      warnings: [],
      agents: [
        {
          node_id: '3d480af8ff014fe595dbb4008650d659',
          name: 'web-01',
          mode: 'manual',
          on_trial: false,
          modules: ['motd'],
          problem: null,
        },
      ],
    },
  },
  previewValueSet: {
    params: {
      name: 'prod',
    },
    body: {
      content: 'values:\n  - when: {tag.role: web}\n    set: {motd: {greeting: welcome}}\n',
    },
    status: 200,
    answer: {
      sha256: null,
      changed: true,
      warnings: [],
      agents: [
        {
          node_id: '3d480af8ff014fe595dbb4008650d659',
          name: 'web-01',
          mode: 'manual',
          on_trial: false,
          modules: ['motd'],
          problem: null,
        },
      ],
    },
  },
  getValueSet: {
    params: {
      name: 'prod',
    },
    status: 200,
    answer: {
      name: 'prod',
      revision: 1,
      sha256: 'c28fc1c7d3cb8478879123b7ec506b27db938f8f34fc90916bd80c65fd8a4704',
      uploaded_at: 1795845182,
      uploaded_by: 'f73949d1c67ece1c80aac5a580b586d4',
      modules: ['motd'],
      content: 'values:\n  - when: {tag.role: web}\n    set: {motd: {greeting: welcome}}\n',
    },
  },
  listValueSetRevisions: {
    params: {
      name: 'prod',
    },
    status: 200,
    answer: {
      revisions: [
        {
          name: 'prod',
          revision: 1,
          sha256: 'c28fc1c7d3cb8478879123b7ec506b27db938f8f34fc90916bd80c65fd8a4704',
          uploaded_at: 1795845182,
          uploaded_by: 'f73949d1c67ece1c80aac5a580b586d4',
        },
      ],
    },
  },
  removeValueSet: {
    params: {
      name: 'prod',
    },
    status: 204,
  },
  explainValues: {
    params: {
      node_id: '3d480af8ff014fe595dbb4008650d659',
    },
    query: {
      module: 'motd',
    },
    status: 200,
    answer: {
      modules: [
        {
          module: 'motd',
          inputs: [
            {
              name: 'greeting',
              value: 'welcome',
              is_default: false,
              candidates: [
                {
                  value: 'welcome',
                  from: 'prod.values.yaml:3',
                  when: {
                    'tag.role': 'web',
                  },
                  used: true,
                },
              ],
              problem: null,
            },
          ],
        },
      ],
    },
  },
};
