/** `orch maintenance end`. */
import type { ApiClient } from '../../../client/api-client.js';
import type { MaintenanceWindow } from '../../../contract/maintenance-windows.js';
import { toSeconds } from '../../../kernel/clock.js';
import { Fault } from '../../../kernel/fault.js';
import { optionalArgument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { formatTime } from '../../format.js';
import { lines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch maintenance end', 'orch maintenance end 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['Without an ID it ends the active window when there is only one.'],
  access: 'admin',
  args: { id: optionalArgument('ID', 'its ID, as "orch maintenance list" shows it', 'window') },
  run: async (context, input) => {
    const { signal, clock } = context;
    const api = await context.api();
    const { id, starts_at } = requireActive(
      input.id === undefined
        ? await onlyActive(api, signal)
        : await api.call('getMaintenanceWindow', { params: { id: input.id }, signal }),
    );
    // A window lasts a second at least.
    const body = { ends_at: Math.max(toSeconds(clock.now()), starts_at + 1) };
    const window = await api.call('updateMaintenanceWindow', { params: { id }, body, signal });
    const done = window.status === 'active' ? `ends at ${formatTime(window.ends_at)}` : 'has ended';
    return { body: window, names: [id], view: lines(`The maintenance window ${id} ${done}.`) };
  },
});

function requireActive(window: MaintenanceWindow): MaintenanceWindow {
  if (window.status === 'active') return window;
  const { id, starts_at, ends_at } = window;
  if (window.status === 'ended') {
    throw new Fault('maintenance_window_over', `the maintenance window ${id} is over since ${formatTime(ends_at)}`);
  }
  throw new Fault('usage', `the maintenance window ${id} has not begun; it is to begin at ${formatTime(starts_at)}`, {
    hint: `call it off with: orch maintenance remove ${id}`,
  });
}

async function onlyActive(api: ApiClient, signal: AbortSignal): Promise<MaintenanceWindow> {
  const windows = await api.call('listMaintenanceWindows', { signal });
  const [window, another] = windows.filter(({ status }) => status === 'active');
  if (window === undefined) {
    throw new Fault('maintenance_window_not_found', 'no maintenance window is active', {
      hint: 'see what there is: orch maintenance list',
    });
  }
  if (another === undefined) return window;
  throw new Fault('usage', 'more than one maintenance window is active, so name the one to end', {
    hint: 'see what there is: orch maintenance list',
  });
}
