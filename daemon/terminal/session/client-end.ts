/** One operator's end of a session, from its welcome until its socket is gone. */

import type { InputGate } from '../../../src/terminal/late-input.js';
import type { TerminalMode } from '../../../src/terminal/notes.js';
import type { TerminalSocket } from '../terminal-socket.js';
import type { Attacher } from '../tickets.js';
import type { AskBudget } from './ask-budget.js';
import type { ClientOutput } from './client-output.js';

export interface ClientEnd {
  readonly socket: TerminalSocket;
  readonly operator: Attacher;
  readonly address: string | null;
  /** Hash of the secret with which it comes back. */
  readonly secretHash: string;
  mode: TerminalMode;
  readonly output: ClientOutput;
  readonly gate: InputGate;
  readonly asks: AskBudget;
}
