/** `orch module revisions`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { formatTime } from '../../format.js';
import { operatorNames } from '../../operator-names.js';

export const command = defineCommand({
  examples: ['orch module revisions nginx'],
  detail: ['The newest is the current one. The last 50 are kept; orch module show and diff take --revision N.'],
  access: 'viewer',
  args: { name: argument('MODULE', 'name of the module', 'module') },
  run: async (context, { name }) => {
    const api = await context.api();
    const body = await api.call('listModuleRevisions', { params: { name }, signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return {
      body,
      names: body.revisions.map(({ revision }) => String(revision)),
      view: {
        kind: 'table',
        columns: [
          { title: 'REVISION', right: true },
          { title: 'UPLOADED' },
          { title: 'BY' },
          { title: 'SHA-256', whole: true },
        ],
        rows: body.revisions.map(({ revision, uploaded_at, uploaded_by, sha256 }) => [
          String(revision),
          formatTime(uploaded_at),
          nameOf(uploaded_by),
          sha256.slice(0, 12),
        ]),
        empty: 'No revisions.',
      },
    };
  },
});
