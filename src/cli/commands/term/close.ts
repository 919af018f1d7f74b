/** `orch term close`. */
import { Fault } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { plainText } from '../../render/paint.js';
import { lines } from '../../view.js';
import { findSession, sessionArgument } from './find-session.js';
import { sessionLabel, sessionStatus } from './session-view.js';

export const command = defineCommand({
  examples: ['orch term close 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: [
    'Its program is told to hang up, and killed when it does not. Whoever is attached is told that it was closed.',
  ],
  access: 'operator',
  consent: true,
  args: { id: sessionArgument },
  run: async (context, { id }) => {
    const { signal } = context;
    const api = await context.api();
    const request = { params: { session_id: await findSession(api, id, signal) }, signal };
    const session = await api.call('getTerminal', request);
    if (session.status !== 'active') {
      throw new Fault('terminal_over', `session ${session.session_id} is over: ${plainText(sessionStatus(session))}`);
    }
    await context.prompt.consent(`Close the session of ${sessionLabel(session)}, and end its program?`);
    await api.call('closeTerminal', request);
    return { names: [session.session_id], view: lines(`Closed ${session.session_id}.`) };
  },
});
