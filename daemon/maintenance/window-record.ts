/** Rows of maintenance windows as the API shows them, and as parties of events. */
import type { MaintenanceWindow } from '../../src/contract/maintenance-windows.js';
import { toSeconds, toTimestamp } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { Party } from '../core/domain-event.js';
import type { WindowRow } from './window-store.js';

type Times = Pick<WindowRow, 'starts_at' | 'ends_at'>;

/** From its start, up to but not including its end. */
export const isActive = ({ starts_at, ends_at }: Times, now: number): boolean => starts_at <= now && now < ends_at;

/** Also when its end was told and the clock was set back since. */
export const isOver = ({ ends_at, told }: WindowRow, now: number): boolean => told === 'ended' || ends_at <= now;

export const windowParty = ({ window_id, reason }: WindowRow): Party => ({
  id: window_id,
  name: reason,
  type: 'window',
});

export const windowDetails = ({ reason, starts_at, ends_at }: WindowRow): JsonObject => ({
  reason,
  starts_at: toTimestamp(starts_at),
  ends_at: toTimestamp(ends_at),
});

export const windowView = (row: WindowRow, now: number): MaintenanceWindow => ({
  id: row.window_id,
  reason: row.reason,
  starts_at: toSeconds(row.starts_at),
  ends_at: toSeconds(row.ends_at),
  created_by: row.created_by,
  created_at: toSeconds(row.created_at),
  status: isOver(row, now) ? 'ended' : isActive(row, now) ? 'active' : 'scheduled',
});

export const windowNotFound = (id: string): Fault =>
  new Fault('maintenance_window_not_found', `there is no maintenance window ${id}`, {
    hint: 'see what there is: orch maintenance list',
  });
