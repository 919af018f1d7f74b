/** `orch tags`. */
import { defineCommand } from '../define-command.js';

export const command = defineCommand({
  examples: ['orch tags'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    const body = await api.call('listTags', { signal: context.signal });
    const keys = Object.keys(body.tags).sort();
    return {
      body,
      names: keys,
      view: {
        kind: 'table',
        columns: [{ title: 'TAG', whole: true }, { title: 'VALUES' }],
        rows: keys.map((key) => [key, (body.tags[key] ?? []).filter((value) => value !== '').join(', ')]),
        empty: 'No agent has a tag. Put one on with: orch agents tag NODE role=web',
      },
    };
  },
});
