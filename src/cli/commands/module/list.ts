/** `orch module list`. */
import { defineCommand } from '../../define-command.js';
import { formatTime } from '../../format.js';
import { operatorNames } from '../../operator-names.js';

export const command = defineCommand({
  examples: ['orch module list'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    const modules = await api.call('listModules', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return {
      body: modules,
      names: modules.map(({ name }) => name),
      view: {
        kind: 'table',
        columns: [{ title: 'MODULE', whole: true }, { title: 'UPLOADED' }, { title: 'BY' }],
        rows: modules.map(({ name, uploaded_at, uploaded_by }) => [name, formatTime(uploaded_at), nameOf(uploaded_by)]),
        empty: 'No modules. Upload one with: orch module push FILE',
      },
    };
  },
});
