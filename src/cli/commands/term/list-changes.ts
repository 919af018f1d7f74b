/** What has changed in a list of terminal sessions since it was read before. */
import type { TerminalSession } from '../../../contract/terminal.js';
import { formatTime } from '../../format.js';
import { type Line, styled } from '../../view.js';
import { sessionLabel, sessionStatus } from './session-view.js';

export interface SessionChange {
  readonly session: TerminalSession;
  readonly what: 'opened' | 'ended' | 'people';
}

/** The oldest first. */
export function sessionChanges(
  before: ReadonlyMap<string, TerminalSession>,
  now: readonly TerminalSession[],
): readonly SessionChange[] {
  const changes = now.flatMap((session): readonly SessionChange[] => {
    const old = before.get(session.session_id);
    const ended = session.status !== 'active';
    if (old === undefined)
      return [{ session, what: 'opened' }, ...(ended ? [{ session, what: 'ended' } as const] : [])];
    if (old.status === 'active' && ended) return [{ session, what: 'ended' }];
    return people(old) === people(session) ? [] : [{ session, what: 'people' }];
  });
  return changes.sort((a, b) => timeOf(a) - timeOf(b));
}

/** @param at Unix milliseconds, for what the session itself has no time of */
export function changeLine({ session, what }: SessionChange, at: number): Line {
  const seconds = what === 'opened' ? session.opened_at : session.closed_at;
  const time = styled('dim', formatTime(seconds ?? Math.floor(at / 1000)));
  const head = [time, `  ${session.session_id}  ${sessionLabel(session)}: `];
  if (what === 'opened') return [...head, styled('good', 'opened')];
  return [...head, what === 'ended' ? sessionStatus(session) : people(session)];
}

const timeOf = ({ session, what }: SessionChange): number =>
  (what === 'ended' ? session.closed_at : session.opened_at) ?? session.opened_at;

function people({ writer, viewers }: TerminalSession): string {
  const watching = viewers.length === 0 ? '' : `, watched by ${viewers.join(', ')}`;
  return `${writer === null ? 'nobody writes' : `${writer} writes`}${watching}`;
}
