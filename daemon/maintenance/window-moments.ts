/** When maintenance windows begin and end, and the events that tell of it: each once, whenever it is noticed. */
import { toTimestamp } from '../../src/kernel/clock.js';
import { type DomainEvent, eventOfRequest, type RequestContext, SYSTEM } from '../core/domain-event.js';
import { windowDetails, windowParty } from './window-record.js';
import type { WindowRow } from './window-store.js';

export interface Moment {
  readonly row: WindowRow;
  /** What the audit log will have been told of the window. */
  readonly told: 'started' | 'ended';
  /** When it was to be, in Unix milliseconds. */
  readonly at: number;
}

/** What has come to pass and was not told yet, in its order; what begins as another one ends stands before that end. */
export function momentsUntil(now: number, rows: readonly WindowRow[]): readonly Moment[] {
  const due = rows.flatMap((row) => momentsOf(row)).filter(({ at }) => at <= now);
  return due.sort((a, b) => a.at - b.at || (a.told === b.told ? 0 : a.told === 'started' ? -1 : 1));
}

function momentsOf(row: WindowRow): readonly Moment[] {
  const end: Moment = { row, told: 'ended', at: row.ends_at };
  switch (row.told) {
    case 'nothing':
      return [{ row, told: 'started', at: row.starts_at }, end];
    case 'started':
      return [end];
    case 'ended':
      return [];
  }
}

/** `context` is of the request that made it begin or end; without one it was time. */
export function momentEvent({ row, told, at }: Moment, context: RequestContext | null): DomainEvent {
  const event = {
    type: `maintenance.${told}`,
    target: windowParty(row),
    summary: `the maintenance window "${row.reason}" has ${told === 'started' ? 'begun' : 'ended'}`,
    metadata: { at: toTimestamp(at), ...windowDetails(row) },
  } as const;
  return context === null ? { ...event, actor: SYSTEM } : eventOfRequest(context, event);
}
