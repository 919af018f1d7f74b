/** `orch maintenance list`. */
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { windowTable } from './window-view.js';

export const command = defineCommand({
  examples: ['orch maintenance list', 'orch maintenance'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    const windows = await api.call('listMaintenanceWindows', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return { body: windows, names: windows.map(({ id }) => id), view: windowTable(windows, nameOf) };
  },
});
