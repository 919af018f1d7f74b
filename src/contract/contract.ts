/** All routes of the API by id. */
import { agentRoutes, factRoutes, fleetRoutes, tagRoutes } from './agents.js';
import { assignmentRoutes } from './assignments.js';
import { auditRoutes } from './audit.js';
import { authRoutes } from './auth.js';
import { channelRoutes } from './channels.js';
import { copyRoutes } from './copy.js';
import { discoveryRoutes } from './discovery.js';
import { driftExcuseRoutes } from './drift-excuses.js';
import { enrolmentTokenRoutes } from './enrolment-tokens.js';
import { fileRoutes } from './files.js';
import { forwardRoutes } from './forward.js';
import { maintenanceWindowRoutes } from './maintenance-windows.js';
import { metricsRoutes } from './metrics.js';
import { moduleRoutes } from './modules.js';
import { notificationRoutes } from './notifications.js';
import { operationRoutes } from './operations.js';
import { operatorRoutes } from './operators.js';
import { rolloutRoutes } from './rollouts.js';
import { runRoutes } from './runs.js';
import { secretRoutes } from './secrets.js';
import { statusRoutes } from './status.js';
import { terminalRoutes } from './terminal.js';
import { upgradeRoutes } from './upgrades.js';
import { valueRoutes } from './values.js';

export const API_BASE = '/api/v1';

export const CONTRACT = {
  ...statusRoutes,
  ...discoveryRoutes,
  ...authRoutes,
  ...operatorRoutes,
  ...agentRoutes,
  ...fleetRoutes,
  ...factRoutes,
  ...upgradeRoutes,
  ...enrolmentTokenRoutes,
  ...tagRoutes,
  ...metricsRoutes,
  ...moduleRoutes,
  ...fileRoutes,
  ...valueRoutes,
  ...assignmentRoutes,
  ...rolloutRoutes,
  ...runRoutes,
  ...driftExcuseRoutes,
  ...operationRoutes,
  ...secretRoutes,
  ...channelRoutes,
  ...notificationRoutes,
  ...terminalRoutes,
  ...forwardRoutes,
  ...copyRoutes,
  ...maintenanceWindowRoutes,
  ...auditRoutes,
} as const;

export type Contract = typeof CONTRACT;
export type RouteId = keyof Contract;
