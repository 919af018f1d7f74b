/** A terminal session as people name it: its ID, or a beginning of it that no other session has. */
import type { ApiClient } from '../../../client/api-client.js';
import { Fault } from '../../../kernel/fault.js';
import { isUlid } from '../../../kernel/ids.js';
import { argument, argumentList } from '../../argument.js';
import { sessionLabel } from './session-view.js';

/** Fewest characters that stand for an ID. */
const LEAST_PREFIX = 4;
const BEGINNING = /^[0-9A-HJKMNP-TV-Z]{1,26}$/;
/** Sessions that share a beginning: so many are named. */
const NAMED = 10;

const SUMMARY = 'session ID, as "orch term list --all" shows it, or a unique beginning of one (4 characters or more)';

export const sessionArgument = argument('ID', SUMMARY, 'terminal');
export const sessionsArgument = argumentList('ID', SUMMARY, 'terminal');

/**
 * The whole ID. One that is given whole is not looked up.
 * @throws Fault `terminal_not_found`, or `usage` for a beginning that is too short or that several have
 */
export async function findSession(api: ApiClient, given: string, signal: AbortSignal): Promise<string> {
  const text = given.trim().toUpperCase();
  if (isUlid(text)) return text;
  if (text.length < LEAST_PREFIX) {
    throw new Fault('usage', `"${given}" is too short: give at least ${LEAST_PREFIX} characters of the session ID`);
  }
  const query = { prefix: text, limit: NAMED + 1 };
  const found = BEGINNING.test(text) ? await api.call('listTerminals', { query, signal }) : [];
  const [first, ...others] = found;
  if (first === undefined) {
    throw new Fault('terminal_not_found', `there is no session "${given}"`, {
      hint: 'see what there is: orch term list --all',
    });
  }
  if (others.length === 0) return first.session_id;
  const named = found.slice(0, NAMED);
  const count = found.length > NAMED ? `more than ${NAMED} sessions; the newest` : `${found.length} sessions`;
  const list = named.map((session) => `  ${session.session_id}  ${sessionLabel(session)}  ${session.status}`);
  throw new Fault('usage', `"${given}" begins the IDs of ${count}:\n${list.join('\n')}`, {
    hint: 'give more characters',
  });
}
