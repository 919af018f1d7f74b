/** `orch maintenance show`. */
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { windowArgument } from './window-argument.js';
import { windowFields } from './window-view.js';

export const command = defineCommand({
  examples: ['orch maintenance show 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  access: 'viewer',
  args: { id: windowArgument },
  run: async (context, { id }) => {
    const api = await context.api();
    const window = await api.call('getMaintenanceWindow', { params: { id }, signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return { body: window, names: [window.id], view: windowFields(window, nameOf) };
  },
});
