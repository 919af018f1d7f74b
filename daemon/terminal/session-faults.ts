/** What is wrong with a session that somebody asks for. */
import { Fault } from '../../src/kernel/fault.js';
import type { TerminalRow } from './session-store.js';

export const sessionNotFound = (sessionId: string): Fault =>
  new Fault('terminal_not_found', `there is no terminal session ${JSON.stringify(sessionId)}`, {
    hint: 'see what there is: orch term list',
  });

export const sessionOver = ({ session_id, status, reason }: TerminalRow): Fault =>
  new Fault('terminal_over', `the session ${session_id} is ${status}${reason === null ? '' : ` (${reason})`}`, {
    hint: 'open a new one: orch term open NODE',
  });
