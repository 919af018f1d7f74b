/** Agents as tables and details. */
import type { Agent } from '../../contract/agents.js';
import { groupsOfFour } from '../../identity/key-object.js';
import { compareVersions } from '../../release/version-order.js';
import {
  agentName,
  formatBytes,
  formatDuration,
  formatTags,
  formatTime,
  NONE,
  type TimeCell,
  textOrNone,
} from '../format.js';
import {
  type Column,
  type FieldsView,
  fields,
  fieldsOf,
  headed,
  type Span,
  stack,
  styled,
  type TableCell,
  type TableView,
  type View,
} from '../outcome.js';
import { contestText } from '../render/contest.js';
import { standingFields, standingSpan } from '../render/standing.js';

/** Characters of a shown node ID; approval needs 8. */
const SHORT_ID = 12;

/** Columns of agents. */
export const AGENT_COLUMNS: readonly Column[] = [
  // A host name that became the name may be longer than the terminal is wide.
  { title: 'NAME', whole: true, least: 24 },
  { title: 'STATUS', whole: true },
  { title: 'CONNECTED', whole: true },
  { title: 'STANDING', whole: true },
  { title: 'HOSTNAME', spare: 3 },
  { title: 'PLATFORM', spare: 2 },
  { title: 'NODE ID', whole: true, spare: 1 },
  { title: 'TAGS' },
  { title: 'VERSION', whole: true },
  { title: 'ADDRESS', wide: true },
  { title: 'LAST CONNECTED', wide: true },
  { title: 'FQDN', wide: true },
  { title: 'KERNEL', wide: true },
  { title: 'PROCESSORS', wide: true, right: true },
  { title: 'MEMORY', wide: true, right: true },
];

export interface AgentTableOptions {
  /** True if the columns of `-o wide` are needed. */
  readonly wide: boolean;
  /** True to show node IDs uncut. */
  readonly fullIds: boolean;
  readonly timeOf: TimeCell;
  /** Version of the orchestrator. */
  readonly version: string;
  /** True if the list was filtered, so that other agents may exist. */
  readonly filtered: boolean;
}

export const agentTable = (
  agents: readonly Agent[],
  { wide, fullIds, timeOf, version, filtered }: AgentTableOptions,
): TableView => ({
  kind: 'table',
  columns: columnsOf(agents, version),
  rows: agents.map((agent) => [
    textOrNone(agent.name),
    agentStatus(agent.status),
    connectionSpan(agent),
    standingSpan(agent),
    agent.attributes.hostname ?? agent.initial_hostname,
    textOrNone(platformOf(agent)),
    fullIds ? agent.node_id : agent.node_id.slice(0, SHORT_ID),
    formatTags(agent.tags),
    versionOf(agent, version),
    agent.initial_ip,
    timeOf(agent.connected_at),
    ...(wide ? factCells(agent) : ['', '', '', '']),
  ]),
  empty: filtered
    ? 'No matching agents. List all with: orch agents'
    : 'No agents. Add a machine with: orch enroll create',
});

/** Returns the columns for these agents. In a fleet of one version that column says nothing, and a machine without a name needs its ID. */
const columnsOf = (agents: readonly Agent[], version: string): readonly Column[] =>
  AGENT_COLUMNS.map((column) => {
    if (column.title === 'VERSION')
      return { ...column, wide: agents.every((agent) => agent.agent_version === version) };
    const isNeeded = column.title === 'NODE ID' && agents.some(({ name }) => name === null);
    return isNeeded ? { title: column.title, whole: true } : column;
  });

/** Returns the facts of a long list. */
function factCells({ attributes }: Agent): readonly TableCell[] {
  const bytes = Number(attributes.memory_bytes);
  const texts = [attributes.fqdn, attributes.kernel, attributes.processors ?? attributes.cpus];
  return [...texts.map((text = '') => textOrNone(text)), bytes > 0 ? { text: formatBytes(bytes), order: bytes } : NONE];
}

/** Returns the version of an agent, and how it differs from that of the orchestrator. */
function versionOf({ agent_version }: Agent, version: string): Span {
  if (agent_version === version) return agent_version;
  const difference = compareVersions(agent_version, version);
  const [word] = [difference < 0 && 'older', difference > 0 && 'newer', 'other'].filter((one) => one !== false);
  return styled('warn', `${agent_version} (${word})`);
}

export function agentDetails(agent: Agent): View {
  const attributes = Object.entries(agent.attributes).sort(([a], [b]) => (a < b ? -1 : 1));
  return stack(
    agentFields(agent),
    headed('Attributes', fieldsOf(attributes.map(([key, value]) => [`  ${key}`, value] as const))),
  );
}

function agentFields(agent: Agent): FieldsView {
  return fields(
    ['Name', textOrNone(agent.name)],
    ['Status', agentStatus(agent.status)],
    ['Connected', agent.connected ? styled('good', 'yes') : 'no'],
    ...contestFields(agent),
    ['Last connected', agent.connected_at === 0 ? 'never' : formatTime(agent.connected_at)],
    ...standingFields(agent),
    ['Node ID', groupsOfFour(agent.node_id)],
    ['Public key', agent.public_key],
    ['First hostname', agent.initial_hostname],
    ['First address', agent.initial_ip],
    ['Agent version', agent.agent_version],
    ['Tags', formatTags(agent.tags) || NONE],
    ...ephemeralFields(agent),
    ['Updated', formatTime(agent.updated_at)],
  );
}

const ephemeralFields = ({ ephemeral_secs: secs }: Agent): readonly (readonly [string, string])[] =>
  secs === undefined ? [] : [['Ephemeral', `removed after ${formatDuration(secs)} without a connection`]];

/** Returns whether the agent is connected, or that several machines claim to be it. */
function connectionSpan({ connected, contest }: Agent): Span {
  if (contest != null) return styled('bad', `${Math.max(contest.machines.length, 2)} machines`);
  return connected ? styled('good', 'yes') : styled('dim', 'no');
}

function contestFields(agent: Agent): readonly (readonly [string, Span])[] {
  const text = contestText(agent);
  if (text === null) return [];
  return [
    [
      'Held',
      styled('bad', `${text}: nothing is sent to it until you decide with orch agents keep ${agentName(agent)}`),
    ],
  ];
}

export function agentStatus(status: Agent['status']): Span {
  if (status === 'approved') return styled('good', status);
  return styled(status === 'pending' ? 'warn' : 'bad', status);
}

/** Returns `debian 12 amd64`, without the parts that the agent does not report. */
function platformOf({ attributes }: Agent): string {
  const { distro, platform, version, arch } = attributes;
  return [distro ?? platform, version, arch].filter((part) => part).join(' ');
}
