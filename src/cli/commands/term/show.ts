/** `orch term show`. */
import { defineCommand } from '../../define-command.js';
import { findSession, sessionArgument } from './find-session.js';
import { sessionDetails } from './session-view.js';

export const command = defineCommand({
  examples: ['orch term show 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  access: 'operator',
  args: { id: sessionArgument },
  run: async (context, { id }) => {
    const { signal } = context;
    const api = await context.api();
    const session_id = await findSession(api, id, signal);
    const session = await api.call('getTerminal', { params: { session_id }, signal });
    return { body: session, names: [session.session_id], view: sessionDetails(session) };
  },
});
