/** A terminal session without a terminal: the client's library, and what it was shown. */
import { connectTerminal } from '../../../src/client/terminal/terminal-connection.js';
import type { TerminalEnd, TerminalSession } from '../../../src/client/terminal/terminal-session.js';
import type { Fleet } from './fleet.js';

export interface OpenedSession {
  readonly session: TerminalSession;
  /** Resolves when the program has ended and all was shown. */
  readonly ended: Promise<TerminalEnd>;
  /** Resolves at the next output. */
  heard(): Promise<void>;
}

export interface OpenOptions {
  /** Run instead of a shell, without a terminal. */
  readonly command?: readonly string[];
  readonly onOutput?: (bytes: Buffer) => void;
}

export async function openSession(fleet: Fleet, { command, onOutput }: OpenOptions = {}): Promise<OpenedSession> {
  const { api, nodeId, clock } = fleet;
  const params = { node_id: nodeId };
  const opened =
    command === undefined
      ? await api.call('openTerminal', { params, query: { cols: 80, rows: 24 } })
      : await api.call('execOnAgent', { params, body: { command: [...command] } });
  let listener: (() => void) | null = null;
  let tellEnd: (end: TerminalEnd) => void = () => {};
  const ended = new Promise<TerminalEnd>((resolve) => {
    tellEnd = resolve;
  });
  const session = connectTerminal({
    api,
    sessionId: opened.session_id,
    wsUrl: opened.ws_url,
    mode: 'write',
    clock,
    random: Math.random,
    queueInput: true,
    events: {
      output: (_stream, bytes, done) => {
        onOutput?.(bytes);
        listener?.();
        done();
      },
      snapshot: (_snapshot, done) => done(),
      note: () => {},
      state: () => {},
      drain: () => {},
      inputDropped: () => {},
      ended: tellEnd,
    },
  });
  return {
    session,
    ended,
    heard: () =>
      new Promise((resolve) => {
        listener = () => {
          listener = null;
          resolve();
        };
      }),
  };
}

/** Ends many sessions and waits for it. */
export async function endAll(sessions: readonly OpenedSession[]): Promise<void> {
  for (const { session } of sessions) session.close();
  await Promise.all(sessions.map(({ ended }) => ended));
}
