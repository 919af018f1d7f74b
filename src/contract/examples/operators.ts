/** Recorded by `test/api/examples.test.ts`: examples of the operations about operators. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listOperators: {
    query: {
      include_removed: 'true',
    },
    status: 200,
    answer: [
      {
        operator_id: 'f73949d1c67ece1c80aac5a580b586d4',
        username: 'root',
        role: 'admin',
        bootstrap: true,
        added_at: 1795845175,
        added_by: 'system',
        removed_at: null,
        removed_by: null,
        public_key: 'a00e8fd01cd2d441f7a74258c1ce88eb8d263437d7b00142c25007720e77e637',
      },
      {
        operator_id: '0eb31c8f379f36a5b7cdd726d096cd99',
        username: 'viewer',
        role: 'viewer',
        bootstrap: false,
        added_at: 1795845177,
        added_by: 'f73949d1c67ece1c80aac5a580b586d4',
        removed_at: null,
        removed_by: null,
        public_key: '257b60b6659a8b333b8d9c1c2b140854cbaf9c29a061eb77be3a48ffe190f1e8',
      },
    ],
  },
  addOperator: {
    body: {
      public_key: 'ebfa3688002eed90f9675e420ff5851e342e6b21edb6866d3eccd8ee9d4446fa',
      username: 'mara',
      role: 'operator',
    },
    status: 201,
    answer: {
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
  },
  rotateOperatorKey: {
    body: {
      public_key: '5fb8138df6b1f35777752a3567ca0a641cbdfd32566108fbbc667e6475ab58cf',
      proof:
        '03b74141d19404309336700c7ae324c63668f13225e2b0d65d8e93aa69d1a5a6738bc1b33812f1d965d57c47ac7a6cd6db8a5ee174be07727d66d0744a1bb107',
    },
    status: 200,
    answer: {
      operator_id: '1069dd2b2801e8adc690964719684534',
      username: 'mara',
      role: 'operator',
      bootstrap: false,
      added_at: 1795845178,
      added_by: 'ea6f49db28f8447b959d9910247135f1',
      removed_at: null,
      removed_by: null,
      public_key: '5fb8138df6b1f35777752a3567ca0a641cbdfd32566108fbbc667e6475ab58cf',
    },
  },
  getOperator: {
    params: {
      operator_id: 'ea6f49db28f8447b959d9910247135f1',
    },
    status: 200,
    answer: {
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
  },
  setOperatorGrants: {
    params: {
      operator_id: '1069dd2b2801e8adc690964719684534',
    },
    body: {
      grants: [
        {
          rights: ['deployer', 'tag:env'],
          selector: 'env=dev',
        },
      ],
    },
    status: 200,
    answer: {
      operator_id: '1069dd2b2801e8adc690964719684534',
      username: 'mara',
      role: 'operator',
      bootstrap: false,
      added_at: 1795845178,
      added_by: 'ea6f49db28f8447b959d9910247135f1',
      removed_at: null,
      removed_by: null,
      public_key: '5fb8138df6b1f35777752a3567ca0a641cbdfd32566108fbbc667e6475ab58cf',
      grants: [
        {
          rights: ['deployer', 'tag:env'],
          selector: 'env=dev',
        },
      ],
    },
  },
  getOperatorRights: {
    params: {
      operator_id: '1069dd2b2801e8adc690964719684534',
    },
    status: 200,
    answer: {
      operator_id: '1069dd2b2801e8adc690964719684534',
      username: 'mara',
      role: 'operator',
      node_id: null,
      rights: ['read', 'plan', 'verify', 'apply', 'cancel'],
      tag_keys: ['env'],
    },
  },
  removeOperator: {
    params: {
      operator_id: '1069dd2b2801e8adc690964719684534',
    },
    status: 204,
  },
};
