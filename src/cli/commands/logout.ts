/** `orch logout`. */
import { defineCommand } from '../define-command.js';
import { lines } from '../view.js';

export const command = defineCommand({
  examples: ['orch logout'],
  detail: ['Ends the session at the orchestrator and forgets its token on this machine.'],
  access: 'viewer',
  run: async (context) => {
    await (await context.api()).logOut();
    return { view: lines('Logged out.') };
  },
});
