/** Connects to a session: one stream of output and one of input, whatever happens to the connections below. */
import { TerminalConnection } from './terminal-connection.js';
import type { ConnectTerminalOptions, TerminalSession } from './terminal-session.js';

/** Connects in the background; what happens is told to `events`, nothing of it before this returns. */
export function connectTerminal(options: ConnectTerminalOptions): TerminalSession {
  const connection = new TerminalConnection(options);
  connection.begin(options.wsUrl);
  return connection;
}
