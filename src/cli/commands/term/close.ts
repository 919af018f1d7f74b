/** `orch term close`. */
import type { TerminalSession } from '../../../contract/terminal.js';
import { Fault, isFault } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { EXIT } from '../../exit-status.js';
import { count } from '../../format.js';
import { plainText } from '../../render/paint.js';
import { linesOf } from '../../view.js';
import { findSession, sessionsArgument } from './find-session.js';
import { sessionLabel, sessionStatus } from './session-view.js';

export const command = defineCommand({
  examples: ['orch term close 01JQ2Z6T0V5X8Y4M3N7P9R1S2T', 'orch term close 01JQ2Z6T 01JQ2Z8T'],
  detail: [
    'Its program is told to hang up, and killed when it does not. Whoever is attached is told that it was closed.',
    'Of several sessions none is closed unless all of them are there and active.',
  ],
  access: 'operator',
  consent: true,
  args: { ids: sessionsArgument },
  run: async (context, { ids }) => {
    const { signal } = context;
    const api = await context.api();
    const sessions = new Map<string, TerminalSession>();
    for (const id of ids) {
      const session_id = await findSession(api, id, signal);
      if (!sessions.has(session_id)) {
        sessions.set(session_id, await api.call('getTerminal', { params: { session_id }, signal }));
      }
    }
    for (const session of sessions.values()) {
      if (session.status === 'active') continue;
      throw new Fault('terminal_over', `session ${session.session_id} is over: ${plainText(sessionStatus(session))}`);
    }
    await context.prompt.consent(questionFor([...sessions.values()]));
    const closed: string[] = [];
    let missed = 0;
    for (const session_id of sessions.keys()) {
      try {
        await api.call('closeTerminal', { params: { session_id }, signal });
        closed.push(session_id);
      } catch (error) {
        // One that ended by itself meanwhile keeps none of the others open.
        if (sessions.size === 1 || !isFault(error, 'terminal_over', 'terminal_not_found')) throw error;
        context.warn(error.message);
        missed += 1;
      }
    }
    return {
      names: closed,
      view: linesOf(closed.map((id) => `Closed ${id}.`)),
      exitStatus: missed > 0 ? EXIT.partlyFailed : EXIT.done,
    };
  },
});

function questionFor(sessions: readonly TerminalSession[]): string {
  const [only] = sessions;
  if (only !== undefined && sessions.length === 1) {
    return `Close the session of ${sessionLabel(only)}, and end its program?`;
  }
  const listed = sessions.map((session) => `  - ${session.session_id}  ${sessionLabel(session)}`);
  return `${listed.join('\n')}\nClose these ${count(sessions.length, 'session')}, and end their programs?`;
}
