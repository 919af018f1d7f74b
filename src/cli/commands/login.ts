/** `orch login`. */
import { defineCommand } from '../define-command.js';
import { formatTime } from '../format.js';
import { lines } from '../view.js';

export const command = defineCommand({
  examples: ['orch login'],
  detail: ['Every command logs in by itself when it has to; this one only tells whether it works.'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    const session = await api.call('getSession', { signal: context.signal });
    const { username, role } = session.operator;
    return {
      body: session,
      names: [username],
      view: lines(`Logged in as ${username} (${role}) until ${formatTime(session.expires_at)}.`),
    };
  },
});
