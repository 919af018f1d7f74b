/** `orch notifications read`. */
import { argumentList } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { count } from '../../format.js';
import { lines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch notifications read 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['Marks them as read by you; for others they stay as they are.'],
  access: 'viewer',
  args: { ids: argumentList('ID', 'IDs of notifications', 'notification') },
  run: async (context, { ids }) => {
    const api = await context.api();
    for (const id of ids) await api.call('readNotification', { params: { id }, signal: context.signal });
    return { names: ids, view: lines(`Marked ${count(ids.length, 'notification')} as read.`) };
  },
});
