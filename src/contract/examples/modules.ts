/** Recorded by `test/api/examples.test.ts`: examples of the operations about modules. */
import type { Example } from '../route.js';

export const examples: Readonly<Record<string, Example>> = {
  listModules: {
    status: 200,
    answer: [
      {
        name: 'logo',
        uploaded_at: 1795845181,
        uploaded_by: 'f73949d1c67ece1c80aac5a580b586d4',
      },
      {
        name: 'motd',
        uploaded_at: 1795845181,
        uploaded_by: 'f73949d1c67ece1c80aac5a580b586d4',
      },
    ],
  },
  uploadModule: {
    body: {
      name: 'motd',
      content:
        'name: motd\nsupports: [{platform: linux}]\ninputs:\n  greeting: {type: string, default: hello}\nresources:\n  - file-unix: {path: /etc/motd, content: "${{ inputs.greeting }}\\n", mode: "0644"}\n  - id: hello\n    script: {program: sh, apply: echo hello}\n',
    },
    status: 201,
    answer: {
      name: 'motd',
      uploaded_at: 1795845181,
      uploaded_by: 'f73949d1c67ece1c80aac5a580b586d4',
      revision: 1,
      sha256: '0a62eb8dd984c372886893f9e2c5edf2818598a96d35d6058f9d76aee90f0f76',
      changed: true,
      warnings: [],
    },
  },
  getModule: {
    params: {
      name: 'motd',
    },
    status: 200,
    answer: {
      name: 'motd',
      uploaded_at: 1795845181,
      uploaded_by: 'f73949d1c67ece1c80aac5a580b586d4',
      revision: 1,
      sha256: '0a62eb8dd984c372886893f9e2c5edf2818598a96d35d6058f9d76aee90f0f76',
      content:
        'name: motd\nsupports: [{platform: linux}]\ninputs:\n  greeting: {type: string, default: hello}\nresources:\n  - file-unix: {path: /etc/motd, content: "${{ inputs.greeting }}\\n", mode: "0644"}\n  - id: hello\n    script: {program: sh, apply: echo hello}\n',
      definition: {
        name: 'motd',
        supports: [
          {
            platform: 'linux',
          },
        ],
      },
    },
  },
  listModuleRevisions: {
    params: {
      name: 'motd',
    },
    status: 200,
    answer: {
      revisions: [
        {
          name: 'motd',
          uploaded_at: 1795845181,
          uploaded_by: 'f73949d1c67ece1c80aac5a580b586d4',
          revision: 1,
          sha256: '0a62eb8dd984c372886893f9e2c5edf2818598a96d35d6058f9d76aee90f0f76',
        },
      ],
    },
  },
  getModuleReach: {
    params: {
      name: 'motd',
    },
    status: 200,
    answer: {
      name: 'motd',
      sha256: '0a62eb8dd984c372886893f9e2c5edf2818598a96d35d6058f9d76aee90f0f76',
      assignments: [
        {
          name: 'web',
          mode: 'manual',
          agents: 1,
        },
      ],
      agents: [
        {
          node_id: '3d480af8ff014fe595dbb4008650d659',
          name: 'web-01',
          mode: 'manual',
          on_trial: false,
          tried: null,
        },
      ],
    },
  },
  removeModule: {
    params: {
      name: 'motd',
    },
    status: 204,
  },
  uploadFile: {
    params: {
      sha256: '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824',
    },
    body: {
      size: 5,
      offset: 0,
      data: 'aGVsbG8=',
    },
    status: 200,
    answer: {
      sha256: '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824',
      size: 5,
      received: 5,
    },
  },
  getFile: {
    params: {
      sha256: '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824',
    },
    status: 200,
    answer: {
      size: 5,
      offset: 0,
      data: 'aGVsbG8=',
    },
  },
};
