/** `orch term attach`. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ApiClient } from '../../../client/api-client.js';
import { Fault, isFault } from '../../../kernel/fault.js';
import type { TerminalMode } from '../../../terminal/notes.js';
import type { Context } from '../../context.js';
import { defineCommand } from '../../define-command.js';
import { EXIT } from '../../exit-status.js';
import { flag } from '../../option.js';
import { sessionOptions, sessionSettings } from '../../terminal/session-options.js';
import { terminalApi } from '../../terminal/terminal-api.js';
import { findSession, sessionArgument } from './find-session.js';

export const command = defineCommand({
  examples: ['orch term attach 01JQ2Z6T0V5X8Y4M3N7P9R1S2T', 'orch term attach 01JQ2Z6T --read-only'],
  detail: [
    'Comes back to a session that was detached, or joins one. One operator types, any number may watch: while somebody else',
    'types you watch, unless you take the pen from them with --take.',
    'What is on the screen is drawn anew. Everything else is as with orch term NODE.',
  ],
  access: 'operator',
  failureStatus: EXIT.lost,
  args: { id: sessionArgument },
  options: {
    readOnly: flag('only watch'),
    take: flag('take the pen from whoever types'),
    ...sessionOptions,
  },
  run: async (context, { id, readOnly, take, ...given }) => {
    if (readOnly && take) throw new Fault('usage', '--read-only and --take exclude each other');
    const settings = sessionSettings(given);
    const { signal } = context;
    const connection = await terminalApi(context);
    const { api } = connection;
    const sessionId = await findSession(api, id, signal);
    // Behind the request: what is loaded first would hold that up.
    const [attached, { runTerminal }] = await Promise.all([
      attach(context, api, { sessionId, readOnly, take }),
      nextTurn().then(() => import('../../terminal/run-terminal.js')),
    ]);
    return runTerminal(context, {
      connection,
      sessionId,
      ...attached,
      isNew: false,
      isReadOnly: readOnly,
      ...settings,
    });
  },
});

interface Wish {
  readonly sessionId: string;
  readonly readOnly: boolean;
  readonly take: boolean;
}

interface Attached {
  readonly wsUrl: string;
  readonly mode: TerminalMode;
}

async function attach({ signal, note }: Context, api: ApiClient, wish: Wish): Promise<Attached> {
  const as = async (mode: TerminalMode, take: boolean): Promise<Attached> => {
    const params = { session_id: wish.sessionId };
    const { ws_url } = await api.call('attachTerminal', { params, body: { mode, take }, signal });
    return { wsUrl: ws_url, mode };
  };
  if (wish.readOnly) return as('read', false);
  try {
    return await as('write', wish.take);
  } catch (error) {
    if (!isFault(error, 'terminal_pen_taken')) throw error;
    note(`${error.message}: you only watch. To type yourself: orch term attach ${wish.sessionId} --take`);
    return as('read', false);
  }
}
