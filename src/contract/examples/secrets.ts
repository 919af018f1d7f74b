/** Recorded by `test/api/examples.test.ts`: examples of the operations about secrets. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listSecrets: {
    status: 200,
    answer: [
      {
        name: 'DB_PASSWORD',
        description: 'the database of the shop',
        expires_at: null,
        restriction: {
          node_ids: [],
          tags: 'tag.role=web',
        },
        created_at: '2026-11-28T05:53:07.062Z',
        created_by: 'f73949d1c67ece1c80aac5a580b586d4',
        updated_at: '2026-11-28T05:53:07.062Z',
        updated_by: 'f73949d1c67ece1c80aac5a580b586d4',
      },
    ],
  },
  createSecret: {
    body: {
      name: 'DB_PASSWORD',
      value: 'correct horse',
      description: 'the database of the shop',
      restriction: {
        tags: 'tag.role=web',
      },
    },
    status: 201,
    answer: {
      name: 'DB_PASSWORD',
      description: 'the database of the shop',
      expires_at: null,
      restriction: {
        node_ids: [],
        tags: 'tag.role=web',
      },
      created_at: '2026-11-28T05:53:07.062Z',
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      updated_at: '2026-11-28T05:53:07.062Z',
      updated_by: 'f73949d1c67ece1c80aac5a580b586d4',
    },
  },
  getSecret: {
    params: {
      name: 'DB_PASSWORD',
    },
    status: 200,
    answer: {
      name: 'DB_PASSWORD',
      description: 'the database of the shop',
      expires_at: null,
      restriction: {
        node_ids: [],
        tags: 'tag.role=web',
      },
      created_at: '2026-11-28T05:53:07.062Z',
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      updated_at: '2026-11-28T05:53:07.062Z',
      updated_by: 'f73949d1c67ece1c80aac5a580b586d4',
    },
  },
  updateSecret: {
    params: {
      name: 'DB_PASSWORD',
    },
    body: {
      value: 'battery staple',
    },
    status: 200,
    answer: {
      name: 'DB_PASSWORD',
      description: 'the database of the shop',
      expires_at: null,
      restriction: {
        node_ids: [],
        tags: 'tag.role=web',
      },
      created_at: '2026-11-28T05:53:07.062Z',
      created_by: 'f73949d1c67ece1c80aac5a580b586d4',
      updated_at: '2026-11-28T05:53:07.120Z',
      updated_by: 'f73949d1c67ece1c80aac5a580b586d4',
    },
  },
  removeSecret: {
    params: {
      name: 'DB_PASSWORD',
    },
    status: 204,
  },
  getSecretUsage: {
    params: {
      name: 'DB_PASSWORD',
    },
    status: 200,
    answer: {
      name: 'DB_PASSWORD',
      modules: [],
      values: [],
      agents: [],
    },
  },
};
