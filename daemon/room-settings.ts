/** What each room wants to know of the settings, in the room's own words and units. */
import type { Settings } from '../src/settings/serve.js';

export const engineLimits = (settings: Settings) => ({
  operations: settings['limits.operations'],
  dispatch: settings['limits.dispatch_secs'] * 1000,
});

export const retentionDays = (settings: Settings) => ({
  operations: settings['retention.operations_days'],
  outputs: settings['retention.outputs_days'],
  drift: settings['drift.retention_days'],
  notifications: settings['retention.notifications_days'],
});

export const terminalRules = (settings: Settings) => ({
  record: settings['terminal.record'],
  idle: settings['terminal.idle_secs'] * 1000,
  detached: settings['terminal.detached_secs'] * 1000,
  max: settings['terminal.max_secs'] * 1000,
  agentGrace: settings['terminal.agent_grace_secs'] * 1000,
  perOperator: settings['terminal.per_operator'],
});

export const addressRules = (settings: Settings) => ({
  allowNetworks: settings['notifications.allow_networks'],
  allowHttp: settings['notifications.allow_http'],
});

export const driftSchedule = (settings: Settings) => ({
  enabled: settings['drift.enabled'],
  interval: settings['drift.interval'] * 1000,
  maxConcurrent: settings['drift.max_concurrent'],
  skipRecentlyApplied: settings['drift.skip_recently_applied'] * 1000,
});

export const metricsSchedule = (settings: Settings) => ({
  interval: settings['metrics.poll_interval'] * 1000,
  retention: settings['metrics.retention'] * 1000,
});

export const pendingLimits = (settings: Settings) => ({
  pendingCapacity: settings.pending_capacity,
  pendingPerAddress: settings['limits.pending_per_address'],
});
