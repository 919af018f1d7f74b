/** Handlers of maintenance windows. */
import type { maintenanceWindowRoutes } from '../../src/contract/maintenance-windows.js';
import type { HandlersFor } from '../http/handler.js';
import type { MaintenanceWindows } from './maintenance-windows.js';

export const maintenanceWindowHandlers = (
  windows: MaintenanceWindows,
): HandlersFor<typeof maintenanceWindowRoutes> => ({
  listMaintenanceWindows: async () => ({ status: 200, body: await windows.list() }),
  createMaintenanceWindow: async ({ body, context }) => ({ status: 201, body: await windows.create(body, context) }),
  getMaintenanceWindow: async ({ params }) => ({ status: 200, body: await windows.get(params.id) }),
  updateMaintenanceWindow: async ({ params, body, context }) => ({
    status: 200,
    body: await windows.update(params.id, body, context),
  }),
  removeMaintenanceWindow: async ({ params, context }) => {
    await windows.remove(params.id, context);
    return { status: 204, body: undefined };
  },
});
