/** Values that the orchestrator, or the profiles, know now. */
import type { ApiClient } from '../../client/api-client.js';
import { profilesPath } from '../../client/directories.js';
import { loadProfiles } from '../../client/profiles.js';
import type { Context } from '../context.js';
import { agentHandle } from '../format.js';
import type { LiveValue } from '../live-value.js';
import { allAgents } from '../nodes/agent-pages.js';
import type { Candidate } from './candidates.js';

type Live = Exclude<LiveValue, 'file' | 'profile'>;

/** Nobody waits longer for a completion. */
const PATIENCE = 2000;

const SOURCES: Readonly<Record<Live, (api: ApiClient, signal: AbortSignal) => Promise<readonly Candidate[]>>> = {
  node: async (api, signal) =>
    (await allAgents(api, { signal })).map((agent) => ({
      word: agentHandle(agent),
      summary: `${agent.status} ${agent.initial_hostname}`,
    })),
  module: async (api, signal) =>
    (await api.call('listModules', { signal })).map(({ name }) => ({ word: name, summary: 'module' })),
  assignment: async (api, signal) =>
    (await api.call('listAssignments', { signal })).map(({ name, selector }) => ({ word: name, summary: selector })),
  operator: async (api, signal) =>
    (await api.call('listOperators', { signal })).map(({ username, role }) => ({ word: username, summary: role })),
  secret: async (api, signal) =>
    (await api.call('listSecrets', { signal })).map(({ name }) => ({ word: name, summary: 'secret' })),
  channel: async (api, signal) =>
    (await api.call('listChannels', { signal })).map(({ name, channel_type }) => ({
      word: name,
      summary: channel_type,
    })),
  notification: async (api, signal) =>
    (await api.call('listNotifications', { query: { unread: true }, signal })).notifications.map(({ id, summary }) => ({
      word: id,
      summary,
    })),
  operation: async (api, signal) =>
    (await api.call('listOperations', { signal })).operations.map(({ operation_id, status, node_name }) => ({
      word: operation_id,
      summary: `${status} ${node_name ?? ''}`,
    })),
  terminal: async (api, signal) =>
    (await api.call('listTerminals', { signal })).map(({ session_id, status, operator, node_name }) => ({
      word: session_id,
      summary: `${status} ${operator} on ${node_name ?? ''}`,
    })),
  window: async (api, signal) =>
    (await api.call('listMaintenanceWindows', { signal })).map(({ id, status, reason }) => ({
      word: id,
      summary: `${status} ${reason}`,
    })),
  drift: async (api, signal) =>
    (await api.call('listDrift', { signal })).records.map(({ drift_id, status }) => ({
      word: drift_id,
      summary: status,
    })),
};

/** Empty whenever they cannot be had: a completion never complains. */
export async function liveValues(context: Context, live: Exclude<LiveValue, 'file'>): Promise<readonly Candidate[]> {
  try {
    if (live === 'profile') {
      const { byName } = await loadProfiles(profilesPath(context.env));
      return Object.entries(byName).map(([word, { url }]) => ({ word, summary: url }));
    }
    return await SOURCES[live](await context.api(), AbortSignal.timeout(PATIENCE));
  } catch {
    return [];
  }
}
