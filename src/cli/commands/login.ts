/** `orch login` and `orch logout`. */
import { defineCommand } from '../define-command.js';
import { formatTime } from '../format.js';
import { lines } from '../outcome.js';

/** `orch login`. */
export const logIn = defineCommand({
  examples: ['orch login'],
  detail: ['Commands log in on their own if needed; this one only checks that it works.'],
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

/** `orch logout`. */
export const logOut = defineCommand({
  examples: ['orch logout'],
  detail: ['Ends the session at the orchestrator and forgets its token on this machine.'],
  access: 'viewer',
  run: async (context) => {
    await (await context.api()).logOut();
    return { view: lines('Logged out.') };
  },
});
