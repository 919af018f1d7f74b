/** A small fleet as the API tells of it. */
import type { Agent, AgentFactsAnswer } from '../../src/contract/agents.js';
import type { AuditEvent } from '../../src/contract/audit.js';
import type { Operation, OperationDetail, State } from '../../src/contract/operations.js';
import type { Operator } from '../../src/contract/operators.js';
import type {
  Rollout,
  RolloutAgent,
  RolloutDetail,
  RolloutRecord,
  RolloutResult,
} from '../../src/contract/rollouts.js';
import type { DriftDetail, DriftRecord, DriftResource, RunResult } from '../../src/contract/runs.js';
import { type ResourceResult, summarize } from '../../src/resources/result.js';
import type { Answers, Reply } from './fake-api.js';

const AT = Date.UTC(2025, 2, 1, 10, 0, 0) / 1000;
export const ulid = (number: number): string => `01JQ2Z6T0V5X8Y4M3N7P9R1S${String(number).padStart(2, '0')}`;
const hex = (digit: string, length: number): string => digit.repeat(length);

export const operators: readonly Operator[] = [
  {
    operator_id: `aaaa1111${hex('0', 24)}`,
    username: 'ada',
    role: 'admin',
    bootstrap: true,
    added_at: AT,
    added_by: 'system',
    removed_at: null,
    removed_by: null,
    public_key: hex('a', 64),
  },
  {
    operator_id: `bbbb2222${hex('0', 24)}`,
    username: 'grace',
    role: 'viewer',
    bootstrap: false,
    added_at: AT + 60,
    added_by: `aaaa1111${hex('0', 24)}`,
    removed_at: AT + 3600,
    removed_by: `aaaa1111${hex('0', 24)}`,
    public_key: hex('b', 64),
  },
];

const agent = (fields: Partial<Agent> & Pick<Agent, 'node_id'>): Agent => ({
  name: null,
  status: 'approved',
  connected: true,
  connected_at: AT,
  updated_at: AT,
  initial_hostname: 'host',
  initial_ip: '10.0.0.1',
  agent_version: '0.1.0',
  public_key: fields.node_id + fields.node_id,
  attributes: { platform: 'linux', distro: 'debian', version: '12', arch: 'x86_64', hostname: 'host' },
  tags: {},
  standing: 'in_sync',
  standing_since: AT,
  standing_reason: null,
  trial: null,
  automation_stopped: null,
  ...fields,
});

export const web1 = agent({
  node_id: `3f2a91c4${hex('1', 24)}`,
  name: 'web-01',
  initial_hostname: 'web-01.example',
  attributes: { platform: 'linux', distro: 'debian', version: '12', arch: 'x86_64', hostname: 'web-01.example' },
  tags: { role: 'web', canary: '' },
});
export const web2 = agent({
  node_id: `3f2a77d0${hex('2', 24)}`,
  name: 'web-02',
  initial_hostname: 'web-02.example',
  attributes: { platform: 'linux', distro: 'debian', version: '12', arch: 'x86_64', hostname: 'web-02.example' },
  tags: { role: 'web' },
});
export const db = agent({
  node_id: `c0ffee00${hex('3', 24)}`,
  name: 'db-01',
  connected: false,
  initial_hostname: 'db-01.example',
  attributes: {},
  tags: { role: 'db', env: 'prod' },
});
export const pending = agent({
  node_id: `77aa55ee${hex('4', 24)}`,
  status: 'pending',
  initial_hostname: 'web-03.example',
  initial_ip: '2001:db8::3',
  attributes: { platform: 'linux', hostname: 'web-03.example' },
});
export const agents: readonly Agent[] = [db, web1, web2, pending];

const resource = (fields: Partial<ResourceResult> & Pick<ResourceResult, 'kind' | 'identity'>): ResourceResult => ({
  module: 'site',
  id: null,
  name: null,
  action: 'none',
  status: 'unchanged',
  changes: [],
  diff: null,
  sensitive: false,
  reason: null,
  error: null,
  duration_ms: 3,
  ...fields,
});

/** One of everything that a plan can show. */
export const planned: readonly ResourceResult[] = [
  resource({ kind: 'directory-unix', identity: '/srv/site' }),
  resource({
    kind: 'file-unix',
    identity: '/srv/site/index.html',
    action: 'create',
    status: 'pending',
    changes: [
      { field: 'content', before: null, after: 'hello\n' },
      { field: 'mode', before: null, after: '0644' },
    ],
    diff: '--- /dev/null\n+++ /srv/site/index.html\n@@ -0,0 +1 @@\n+hello\n',
  }),
  resource({
    kind: 'file-unix',
    identity: '/etc/site.conf',
    action: 'update',
    status: 'pending',
    sensitive: true,
    changes: [
      { field: 'content', before: 'a', after: 'b' },
      { field: 'mode', before: '0644', after: '0600' },
      { field: 'owner', before: 'root', after: 'site' },
    ],
    diff: '--- /etc/site.conf\n+++ /etc/site.conf\n@@ -1,2 +1,2 @@\n port 80\n-password ‹secret db #1111›\n+password ‹secret db #7f3a›\n',
  }),
  resource({
    module: 'base',
    kind: 'script',
    identity: 'warm-up',
    action: 'run',
    status: 'pending',
    reason: 'never run',
  }),
  resource({
    kind: 'service-systemd',
    identity: 'site',
    action: 'restart',
    status: 'pending',
    reason: '/etc/site.conf changes',
  }),
  resource({ module: 'old', kind: 'file-unix', identity: '/etc/old.conf', action: 'remove', status: 'pending' }),
  resource({ module: 'old', kind: 'package-apt', identity: 'curl', action: 'release', status: 'pending' }),
];

export const applied: readonly ResourceResult[] = planned.map((result) =>
  result.status === 'pending' ? { ...result, status: 'changed' } : result,
);

/** An apply of which one resource failed and one was left out for it. */
export const partlyApplied: readonly ResourceResult[] = applied.map((result) => {
  if (result.identity === '/etc/site.conf') {
    return { ...result, status: 'failed', error: { code: 'unknown_owner', message: 'there is no user "site"' } };
  }
  if (result.kind === 'service-systemd') {
    return { ...result, status: 'skipped', reason: 'file-unix /etc/site.conf failed' };
  }
  return result;
});

export const inSync: readonly ResourceResult[] = planned
  .filter(({ kind }) => kind !== 'package-apt')
  .map((result) => ({ ...result, action: 'none', status: 'unchanged', changes: [], diff: null, reason: null }));

export function runResult(resources: readonly ResourceResult[], fields: Partial<RunResult> = {}): RunResult {
  const summary = summarize(resources);
  return {
    operation_id: null,
    node_id: web1.node_id,
    status: summary.failed > 0 ? 'failed' : 'succeeded',
    has_changes: summary.pending + summary.changed > 0,
    modules: ['site'],
    started_at: AT,
    finished_at: AT + 2,
    summary,
    resources: [...resources],
    warnings: [],
    plan_hash: `${hex('a', 64)}.${hex('b', 64)}`,
    error: null,
    ...fields,
  };
}

/** The lines of a run's stream. */
export const runLines = (result: RunResult): readonly unknown[] => [
  { event: 'started', operation_id: result.operation_id },
  ...result.resources.map((one) => ({ event: 'resource', resource: one })),
  { event: 'result', result },
];

export const streamOf = (result: RunResult): Reply => ({ lines: runLines(result) });

export function driftDetail(resources: readonly DriftResource[], fields: Partial<DriftDetail> = {}): DriftDetail {
  const summary = summarize(resources);
  return {
    drift_id: ulid(7),
    node_id: web1.node_id,
    status: summary.pending > 0 ? 'drifted' : 'in_sync',
    trigger: 'manual',
    requested_by: 'ada',
    operation_id: ulid(1),
    started_at: AT,
    finished_at: AT + 1,
    has_changes: summary.pending > 0,
    summary,
    snoozed: 0,
    accepted: 0,
    error: null,
    resources: [...resources],
    ...fields,
  };
}

export const driftRecords: readonly DriftRecord[] = [
  driftDetail(planned.slice(0, 2)),
  driftDetail(inSync, { drift_id: ulid(6), trigger: 'scheduled', requested_by: null, node_id: db.node_id }),
].map(({ resources: _, ...record }) => record);

const operation = (resources: readonly ResourceResult[], fields: Partial<Operation> = {}): OperationDetail => ({
  operation_id: ulid(1),
  node_id: web1.node_id,
  node_name: 'web-01',
  kind: 'apply',
  status: 'succeeded',
  modules: ['base', 'site'],
  assignments: [],
  rollout_id: null,
  requested_by: 'ada',
  started_at: AT,
  finished_at: AT + 125,
  summary: summarize(resources),
  error: null,
  ...fields,
  resources: [...resources],
});

export const operations: readonly OperationDetail[] = [
  operation(partlyApplied, { operation_id: ulid(2), status: 'failed' }),
  operation(applied),
  operation([], {
    operation_id: ulid(0),
    node_id: db.node_id,
    node_name: 'db-01',
    status: 'failed',
    error: { code: 'not_delivered', message: 'the agent was not connected for 10 minutes' },
  }),
];

export const state: State = {
  node_id: web1.node_id,
  operation_id: ulid(1),
  applied: [
    {
      module: 'site',
      kind: 'file-unix',
      identity: '/srv/site/index.html',
      applied_at: AT,
      operation_id: ulid(1),
      origin: 'created',
    },
    {
      module: 'site',
      kind: 'directory-unix',
      identity: '/srv',
      applied_at: AT,
      operation_id: ulid(1),
      origin: 'adopted',
    },
  ],
  pending_removals: [
    {
      module: 'old',
      kind: 'file-unix',
      identity: '/etc/old.conf',
      applied_at: AT,
      operation_id: ulid(0),
      origin: 'created',
    },
  ],
  unapplied: [{ module: 'site', kind: 'service-systemd', identity: 'site' }],
};

const event = (number: number, fields: Partial<AuditEvent>): AuditEvent => ({
  id: ulid(number),
  event_type: 'agent.approved',
  severity: 'info',
  summary: 'approved web-01',
  timestamp: '2025-03-01T10:00:00.123Z',
  metadata: {},
  actor: { id: 'aaaa', name: 'ada', type: 'operator' },
  target: { id: web1.node_id, name: 'web-01', type: 'agent' },
  ...fields,
});

export const events: readonly AuditEvent[] = [
  event(3, {
    event_type: 'drift.detected',
    severity: 'warning',
    summary: 'web-01 has drifted in 2 of 7 resources',
    actor: { id: '', name: '', type: 'system' },
  }),
  event(2, {
    event_type: 'agent.duplicate_identity',
    severity: 'critical',
    summary: 'a second connection with the key of web-01',
    actor: { id: web1.node_id, name: 'web-01', type: 'agent' },
  }),
  event(1, {}),
];

export const module = {
  name: 'site',
  uploaded_at: AT,
  uploaded_by: 'aaaa1111',
  revision: 3,
  sha256: hex('d', 64),
  content: 'name: site\nsupports: []\n',
  definition: { name: 'site', supports: [] },
};

export const session = { operator: operators[0], expires_at: AT + 3600 };

/** Answers to every reading route. */
export const facts: AgentFactsAnswer = {
  attributes: {
    platform: 'linux',
    memory_mb: 3937,
    interfaces: { eth0: { mac: '52:54:00:12:34:56', ipv4: ['192.0.2.10', '192.0.2.11'], ipv6: [] } },
    disks: { sda: { size_mb: 20_480, rotational: false } },
    mounts: [{ path: '/', device: '/dev/sda1', type: 'ext4', size_mb: 19_968 }],
  },
  volatile: { boot_time: 1_767_225_600, free_mb: { '/': 8_123 } },
  facts: {
    rack: { value: { row: 3, roles: ['cache', 'proxy'], ports: [{ name: 'a', up: true }] }, error: null, since: null },
    site: {
      value: 'home',
      error: '/etc/orch/facts.d/site.sh took longer than 5 s and was ended',
      since: 1_767_225_700,
    },
    other: { error: '/etc/orch/facts.d/other.json is a link; put a file of its own there', since: 1_767_225_700 },
  },
  problem: '/etc/orch/facts.d has 80 entries, and only the first 64 are read',
  reported_at: 1_767_225_800,
};

export const readings: Answers = {
  getAgentFacts: { body: facts },
  refreshAgentFacts: { body: facts },
  getModuleReach: ({ params: { name = '' } }) => ({ body: { name, sha256: null, assignments: [], agents: [] } }),
  getStatus: {
    body: {
      status: 'ok',
      protocol_version: 1,
      public_key: hex('c', 64),
      version: '0.1.0',
      reasons: [],
    },
  },
  getFleet: {
    body: {
      outdated_agents: 0,
      rollouts: { running: 0, paused: 0, halted: 0 },
      standings: { never_applied: 1, behind: 2, drifted: 1, in_sync: 4, on_trial: 0, unmanaged: 0 },
    },
  },
  getSession: { body: session },
  listOperators: ({ query }) => ({
    body: operators.filter(({ removed_at }) => query.include_removed === 'true' || removed_at === null),
  }),
  listAgents: ({ query }) => ({ body: agents.filter(({ status }) => !query.status || status === query.status) }),
  getAgent: ({ params }) => {
    const found = agents.find(({ node_id }) => node_id === params.node_id);
    return found ? { body: found } : { problem: 'agent_not_found', detail: `there is no agent ${params.node_id}` };
  },
  listTags: { body: { tags: { role: ['db', 'web'], canary: [''], env: ['prod'] } } },
  listModules: { body: [{ name: 'site', uploaded_at: AT, uploaded_by: 'aaaa1111' }] },
  getModule: { body: module },
  getState: { body: state },
  listOperations: {
    body: { operations: operations.map(({ resources: _, ...rest }) => rest), total: 3, limit: 50, offset: 0 },
  },
  listAgentOperations: {
    body: {
      operations: operations.slice(0, 1).map(({ resources: _, ...rest }) => rest),
      total: 9,
      limit: 1,
      offset: 0,
    },
  },
  getOperation: ({ params }) => {
    const found = operations.find(({ operation_id }) => operation_id === params.operation_id);
    return found
      ? { body: found }
      : { problem: 'operation_not_found', detail: `there is no operation ${params.operation_id}` };
  },
  getOperationOutput: {
    body: {
      operation_id: ulid(1),
      output: {
        'base/warm-up': { stdout: 'one\ntwo\n', stderr: 'careful\n', exit_code: 3, truncated: true },
        'base/quiet': { stdout: '', stderr: '', exit_code: 0, truncated: false },
      },
    },
  },
  listRollouts: ({ query }) => {
    const found = rollouts.filter(({ state }) => !query.state || state === query.state);
    return { body: { rollouts: found, total: found.length, limit: 50, offset: 0 } };
  },
  getRollout: ({ params }) =>
    params.rollout_id === ulid(8)
      ? { body: haltedRollout }
      : { problem: 'rollout_not_found', detail: `there is no rollout "${params.rollout_id}"` },
  listDrift: { body: { records: driftRecords } },
  listAgentDrift: { body: { records: driftRecords.slice(0, 1) } },
  listAssignments: { body: [] },
  getDrift: { body: driftDetail(planned.slice(0, 3)) },
  getLatestDrift: { body: null },
  listAuditEvents: { body: { events, has_more: false, next_cursor: null } },
};

/** An agent's part of a rollout, as the stream has it. */
export interface Reported extends RolloutResult {
  readonly result: RunResult | null;
}

export const reported = (agent: Agent, result: RunResult, status: RolloutResult['status'] = 'succeeded'): Reported => ({
  node_id: agent.node_id,
  name: agent.name,
  status,
  operation_id: result.operation_id,
  summary: result.summary,
  error: result.error && { ...result.error, hint: null },
  result: { ...result, node_id: agent.node_id },
});

export const missed = (agent: Agent, status: RolloutResult['status'], code: string, message: string): Reported => ({
  node_id: agent.node_id,
  name: agent.name,
  status,
  operation_id: null,
  summary: null,
  error: { code, message, hint: null },
  result: null,
});

export const OFFLINE = ['unreachable', 'agent_not_connected', 'agent db-01 is not connected'] as const;
export const SKIPPED = ['skipped', 'rollout_stopped', 'not started: 1 agent has failed'] as const;

/** The choice of the agents of a rollout. */
type ChosenBy = Partial<Pick<Rollout, 'assignment' | 'selector'>>;

export function rolloutOf(
  results: readonly Reported[],
  { assignment = null, selector = null }: ChosenBy = {},
): Rollout {
  const howMany = (status: string) => results.filter((one) => one.status === status).length;
  return {
    assignment,
    selector,
    rollout_id: ulid(9),
    has_changes: results.some(({ result }) => result?.has_changes),
    results: results.map(({ result: _, ...rest }) => rest),
    summary: {
      agents: results.length,
      succeeded: howMany('succeeded'),
      failed: howMany('failed'),
      unreachable: howMany('unreachable'),
      skipped: howMany('skipped'),
    },
  };
}

const stream = (results: readonly Reported[], chosen: ChosenBy, records: readonly RolloutRecord[]) => ({
  lines: [
    { event: 'started', rollout_id: ulid(9), agents: results.length },
    ...results.map((agent) => ({ event: 'agent', agent })),
    ...records.map((rollout) => ({ event: 'rollout', rollout })),
    { event: 'result', result: rolloutOf(results, chosen) },
  ],
});

/** The stream of a plan of these agents. */
export const streamed = (results: readonly Reported[], chosen: ChosenBy = {}) => stream(results, chosen, []);

/** The stream of an apply on these agents. It halts if an agent was not started, else it ends by itself. */
export function appliedStream(
  results: readonly Reported[],
  chosen: ChosenBy = {},
  fields: Partial<RolloutRecord> = {},
) {
  const { summary } = rolloutOf(results, chosen);
  const { succeeded, failed, unreachable, skipped, agents: all } = summary;
  const counts = { agents: all, waiting: skipped, running: 0, succeeded, failed, unreachable, skipped: 0, reverted: 0 };
  const state = skipped > 0 ? 'halted' : failed + unreachable > 0 ? 'failed' : 'succeeded';
  const reasons = { halted: '1 agent has failed', failed: `${failed + unreachable} agents did not succeed` };
  const reason = state === 'succeeded' ? null : reasons[state];
  return stream(results, chosen, [rolloutRecord({ state, reason, counts, ...chosen, ...fields })]);
}

/** A rollout in a single wave that succeeded. */
export const rolloutRecord = (fields: Partial<RolloutRecord> = {}): RolloutRecord => ({
  rollout_id: ulid(9),
  state: 'succeeded',
  reason: null,
  assignment: null,
  selector: null,
  modules: ['site'],
  requested_by: operators[0]?.operator_id ?? '',
  started_at: AT,
  finished_at: AT + 125,
  pace: {
    concurrency: 32,
    canary: 0,
    waves: [2],
    soak_secs: 0,
    max_failures: null,
    on_failure: 'halt',
    skip_offline: false,
    expires_at: null,
  },
  wave: null,
  counts: { agents: 2, waiting: 0, running: 0, succeeded: 2, failed: 0, unreachable: 0, skipped: 0, reverted: 0 },
  ...fields,
});

const rolloutAgent = (fields: Partial<RolloutAgent> & Pick<RolloutAgent, 'name'>): RolloutAgent => ({
  node_id: hex('5', 32),
  wave: 1,
  state: 'succeeded',
  operation_id: null,
  summary: null,
  error: null,
  ...fields,
});

const refused = (name: string, number: number): RolloutAgent =>
  rolloutAgent({
    name,
    wave: 2,
    state: 'failed',
    operation_id: ulid(number),
    summary: summarize(partlyApplied),
    error: {
      code: 'removal_guard',
      message: `the apply would remove 12 resources of ${name}`,
      hint: 'look at them, and allow them: --allow-removals 12',
    },
  });

/** A rollout in waves that halted: agents failed alike, one is offline, the others wait. */
export const haltedRollout: RolloutDetail = {
  ...rolloutRecord({
    rollout_id: ulid(8),
    state: 'halted',
    reason: '3 of 12 agents of wave 2 did not succeed',
    assignment: 'web',
    modules: [],
    finished_at: null,
    pace: {
      concurrency: 16,
      canary: 1,
      waves: [1, 11, 28],
      soak_secs: 300,
      max_failures: 3,
      on_failure: 'halt',
      skip_offline: false,
      expires_at: null,
    },
    wave: { number: 2, of: 3, soaking_until: null },
    counts: { agents: 40, waiting: 28, running: 0, succeeded: 9, failed: 2, unreachable: 1, skipped: 0, reverted: 0 },
  }),
  agents: [
    ...Array.from({ length: 9 }, (_, at) =>
      rolloutAgent({ name: `web-0${at + 1}`, wave: at === 0 ? 1 : 2, operation_id: ulid(10 + at) }),
    ),
    refused('web-10', 20),
    refused('web-11', 21),
    rolloutAgent({
      name: 'web-12',
      wave: 2,
      state: 'unreachable',
      error: { code: 'agent_not_connected', message: 'agent web-12 is not connected', hint: null },
    }),
    ...Array.from({ length: 28 }, (_, at) => rolloutAgent({ name: `web-${at + 13}`, wave: 3, state: 'waiting' })),
  ],
};

/** One rollout of each kind, newest first. */
export const rollouts: readonly RolloutRecord[] = [
  rolloutRecord({
    rollout_id: ulid(7),
    state: 'running',
    selector: 'role=web,env=production,datacenter=frankfurt',
    finished_at: null,
    wave: { number: 2, of: 4, soaking_until: AT + 300 },
    counts: {
      agents: 1200,
      waiting: 880,
      running: 32,
      succeeded: 288,
      failed: 0,
      unreachable: 0,
      skipped: 0,
      reverted: 0,
    },
  }),
  (({ agents: _, ...record }) => record)(haltedRollout),
  rolloutRecord(),
];
