/** `orch maintenance remove`. */
import { defineCommand } from '../../define-command.js';
import { formatTime } from '../../format.js';
import { lines } from '../../view.js';
import { windowArgument } from './window-argument.js';

export const command = defineCommand({
  examples: ['orch maintenance remove 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['One that is active ends with it; "orch maintenance end" ends it and keeps its record.'],
  access: 'admin',
  consent: true,
  args: { id: windowArgument },
  run: async (context, { id }) => {
    const api = await context.api();
    const request = { params: { id }, signal: context.signal };
    const { status, reason, starts_at, ends_at } = await api.call('getMaintenanceWindow', request);
    const times = `${status}, ${formatTime(starts_at)} until ${formatTime(ends_at)}`;
    await context.prompt.consent(`Delete the maintenance window "${reason}" (${times})?`);
    await api.call('removeMaintenanceWindow', request);
    return { names: [id], view: lines(`Deleted ${id}.`) };
  },
});
