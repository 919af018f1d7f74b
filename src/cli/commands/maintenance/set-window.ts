/** Makes a maintenance window and shows it. */
import type { MaintenanceWindow } from '../../../contract/maintenance-windows.js';
import type { Context } from '../../context.js';
import { formatTime } from '../../format.js';
import type { Outcome } from '../../outcome.js';
import { lines } from '../../view.js';

export interface WindowTimes {
  readonly reason: string;
  /** Unix seconds. */
  readonly starts_at: number;
  readonly ends_at: number;
}

export async function setWindow(context: Context, body: WindowTimes): Promise<Outcome> {
  const api = await context.api();
  const window = await api.call('createMaintenanceWindow', { body, signal: context.signal });
  return { body: window, names: [window.id], view: lines(sentenceOf(window)) };
}

function sentenceOf({ id, status, starts_at, ends_at }: MaintenanceWindow): string {
  const until = `until ${formatTime(ends_at)}`;
  switch (status) {
    case 'active':
      return `Maintenance ${until}. End it before: orch maintenance end ${id}`;
    case 'scheduled':
      return `Maintenance from ${formatTime(starts_at)} ${until}. Call it off: orch maintenance remove ${id}`;
    case 'ended':
      return `The window ${id} is over by the clock of the orchestrator, which is ahead of this machine's.`;
  }
}
