/** How agents are shown. */
import type { Agent } from '../../../contract/agents.js';
import { groupsOfFour } from '../../../identity/key-id.js';
import { formatTags, formatTime, NONE, orNone } from '../../format.js';
import {
  type FieldsView,
  fields,
  fieldsOf,
  headed,
  type Span,
  stack,
  styled,
  type TableView,
  type View,
} from '../../view.js';

/** Enough for an approval, which wants 8. */
const SHORT_ID = 12;

export interface AgentTableOptions {
  readonly wide: boolean;
  /** Only some agents were asked for, so that there may be others. */
  readonly filtered: boolean;
}

export const agentTable = (agents: readonly Agent[], { wide, filtered }: AgentTableOptions): TableView => ({
  kind: 'table',
  columns: [
    { title: 'NAME', whole: true },
    { title: 'STATUS', whole: true },
    { title: 'CONNECTED', whole: true },
    { title: 'HOSTNAME' },
    { title: 'PLATFORM' },
    { title: 'NODE ID', whole: true },
    { title: 'TAGS' },
    { title: 'ADDRESS', wide: true },
    { title: 'AGENT', wide: true },
    { title: 'LAST CONNECTED', wide: true },
  ],
  rows: agents.map((agent) => [
    orNone(agent.name),
    agentStatus(agent.status),
    agent.connected ? styled('good', 'yes') : styled('dim', 'no'),
    agent.attributes.hostname ?? agent.initial_hostname,
    orNone(platformOf(agent)),
    wide ? agent.node_id : agent.node_id.slice(0, SHORT_ID),
    formatTags(agent.tags),
    agent.initial_ip,
    agent.agent_version,
    orNone(formatTime(agent.connected_at)),
  ]),
  empty: filtered
    ? 'No such agents. See all of them with: orch agents'
    : 'No agents. Run on a machine: orch agent connect HOST --orchestrator-key KEY (the key is in: orch status)',
});

export function agentDetails(agent: Agent): View {
  const attributes = Object.entries(agent.attributes).sort(([a], [b]) => (a < b ? -1 : 1));
  return stack(
    agentFields(agent),
    headed('Attributes', fieldsOf(attributes.map(([key, value]) => [`  ${key}`, value] as const))),
  );
}

function agentFields(agent: Agent): FieldsView {
  return fields(
    ['Name', orNone(agent.name)],
    ['Status', agentStatus(agent.status)],
    ['Connected', agent.connected ? styled('good', 'yes') : 'no'],
    ['Last connected', agent.connected_at === 0 ? 'never' : formatTime(agent.connected_at)],
    ['Node ID', groupsOfFour(agent.node_id)],
    ['Public key', agent.public_key],
    ['First hostname', agent.initial_hostname],
    ['First address', agent.initial_ip],
    ['Agent version', agent.agent_version],
    ['Tags', formatTags(agent.tags) || NONE],
    ['Updated', formatTime(agent.updated_at)],
  );
}

export function agentStatus(status: Agent['status']): Span {
  if (status === 'approved') return styled('good', status);
  return styled(status === 'pending' ? 'warn' : 'bad', status);
}

/** `debian 12 amd64`, as far as the agent tells. */
function platformOf({ attributes }: Agent): string {
  const { distro, platform, version, arch } = attributes;
  return [distro ?? platform, version, arch].filter((part) => part).join(' ');
}
