/** `orch notifications read-all`. */
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch notifications read-all'],
  detail: ['Marks everything that there is now as read by you; for others it stays as it is.'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    await api.call('readAllNotifications', { signal: context.signal });
    return { view: lines('Marked every notification as read.') };
  },
});
