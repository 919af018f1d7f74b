/** A valid request for each operation; those of writes are about what is not there, so that sending one changes little. */
import { createHash } from 'node:crypto';
import { ulid } from 'ulid';
import type { RouteId } from '../../src/contract/contract.js';
import { type Call, newPerson, type World } from './world.js';

type Sample = Omit<Call, 'as' | 'token' | 'hangsUp'>;

/** IDs of what is there, where a request is not to be about nothing. */
export interface KnownIds {
  readonly channel?: string;
  readonly window?: string;
  readonly token?: string;
}

export const MODULE = 'name: sample\nsupports: [{platform: linux}]\nresources: []\n';

const VALUES = 'values: [{when: {}, set: {sample: {}}}]\n';
/** Values of a request of its own. */
const ONE_OFF = { set: ['sample:workers=8'], files: [{ name: 'sample.values.yaml', content: VALUES }] };

export function samplesFor({ agents, people }: World, known: KnownIds = {}): Readonly<Record<RouteId, Sample>> {
  const node = { params: { node_id: agents.connected } };
  const away = { params: { node_id: agents.away } };
  const name = { params: { name: 'sample' } };
  const id = { params: { id: ulid() } };
  const channel = { params: { id: known.channel ?? ulid() } };
  const window = { params: { id: known.window ?? ulid() } };
  const token = { params: { id: known.token ?? ulid() } };
  const session = { params: { session_id: ulid() } };
  const operation = { params: { operation_id: ulid() } };
  const file = { params: { sha256: createHash('sha256').update('hello').digest('hex') } };
  const stranger = newPerson().publicKey;
  const login = { public_key: people.viewer.publicKey };
  const hour = 3600 + Math.floor(Date.now() / 1000);
  return {
    discover: { body: { target: '127.0.0.1:9' } },
    getStatus: {},
    getOpenApi: {},
    getApiPage: {},
    getModuleSchema: {},
    createChallenge: { body: login },
    verifyChallenge: { body: { ...login, signature: 'ab'.repeat(64) } },
    getSession: {},
    endSession: {},
    listOperators: { query: { include_removed: 'true' } },
    addOperator: { body: { public_key: stranger, username: 'sample', role: 'viewer' } },
    rotateOperatorKey: { body: { public_key: stranger, proof: 'ab'.repeat(64) } },
    getOperator: { params: { operator_id: 'sample' } },
    setOperatorGrants: {
      params: { operator_id: 'f'.repeat(32) },
      body: { grants: [{ rights: ['read'], selector: 'env=dev' }] },
    },
    getOperatorRights: { params: { operator_id: 'f'.repeat(32) } },
    removeOperator: { params: { operator_id: 'f'.repeat(32) } },
    getFleet: {},
    listAgents: { query: { status: 'approved', filter: 'platform=linux', limit: '2', cursor: agents.away } },
    getAgent: node,
    renameAgent: { ...away, body: { name: 'sample' } },
    keepMachine: { ...away, body: { hostname: 'away', address: '127.0.0.1' } },
    setAgentStatus: { ...away, body: { status: 'approved', name: 'away' } },
    removeAgent: away,
    getAgentAttributes: node,
    getAgentFacts: node,
    refreshAgentFacts: away,
    upgradeAgent: { ...away, body: { version: '0.0.1', force: false, wait_secs: 60 } },
    getAgentUpgrade: node,
    listEnrolmentTokens: {},
    createEnrolmentToken: { body: { ttl_secs: 60, uses: 1, tags: { site: 'lab' }, auto_approve: false } },
    revokeEnrolmentToken: token,
    listTags: {},
    replaceTags: { ...away, body: { tags: { site: 'lab' } } },
    setTag: { params: { ...away.params, key: 'site' }, body: { value: 'lab' } },
    removeTag: { params: { ...away.params, key: 'site' } },
    getMetrics: { ...node, query: { since: '1', limit: '5' } },
    getLatestMetrics: node,
    listLatestMetrics: {},
    getOwnMetrics: {},
    listModules: {},
    uploadModule: { body: { name: 'sample', content: MODULE } },
    getModule: { ...name, query: { revision: '1' } },
    getModuleReach: { ...name },
    getTrial: { ...node },
    listModuleRevisions: name,
    removeModule: name,
    uploadFile: { ...file, body: { size: 5, offset: 0, data: 'aGVsbG8=' } },
    getFile: file,
    listValueSets: {},
    uploadValueSet: { body: { name: 'sample', content: VALUES } },
    previewValueSet: { ...name, body: { content: VALUES } },
    getValueSet: { ...name, query: { revision: '1' } },
    listValueSetRevisions: name,
    removeValueSet: name,
    explainValues: { ...node, query: { module: 'sample' } },
    listAssignments: {},
    createAssignment: {
      body: {
        name: 'sample',
        modules: ['sample'],
        selector: 'tag.site=nowhere',
        description: 'a sample',
        mode: 'manual',
      },
    },
    getAssignment: name,
    updateAssignment: {
      ...name,
      body: { modules: ['sample'], selector: 'tag.site=nowhere', description: '', mode: 'manual' },
    },
    resumeAssignment: name,
    removeAssignment: name,
    planAssignment: { ...name, body: { concurrency: 2, canary: 1, max_failures: 1, modules: [] } },
    applyAssignment: {
      ...name,
      body: { concurrency: 2, canary: 1, max_failures: 1, modules: [], allow_removals: 0, expect: {}, wait: true },
    },
    planRollout: {
      body: {
        selector: 'tag.site=nowhere',
        concurrency: 2,
        canary: 1,
        max_failures: 1,
        modules: [],
        values: ONE_OFF,
      },
    },
    applyRollout: {
      body: {
        agents: [agents.away],
        concurrency: 2,
        canary: 1,
        max_failures: 1,
        modules: [],
        values: ONE_OFF,
        progress: true,
        allow_removals: 0,
        expect: {},
        wait: true,
      },
    },
    listRollouts: { query: { limit: '5', offset: '0', state: 'running', assignment: 'sample' } },
    getRollout: { params: { rollout_id: ulid() }, query: { progress: 'true' } },
    pauseRollout: { params: { rollout_id: ulid() }, body: { reason: 'lunch' } },
    resumeRollout: { params: { rollout_id: ulid() } },
    retryRollout: { params: { rollout_id: ulid() } },
    cancelRollout: { params: { rollout_id: ulid() } },
    verifyAgent: node,
    planAgent: { ...node, body: { modules: ['sample'], values: ONE_OFF } },
    applyAgent: { ...node, body: { modules: ['sample'], values: ONE_OFF, allow_removals: 0, wait: true } },
    checkDrift: node,
    listAgentDrift: { ...node, query: { limit: '5', status: 'in_sync' } },
    getLatestDrift: node,
    listDrift: { query: { limit: '5', status: 'in_sync', filter: 'role=web' } },
    getDrift: { params: { drift_id: ulid() } },
    listDriftExcuses: { query: { node: agents.connected } },
    snoozeDrift: {
      ...node,
      body: {
        resources: [{ module: 'sample', kind: 'file-unix', identity: '/sample' }],
        ends_at: hour,
        reason: 'a sample',
      },
    },
    endDriftSnooze: { params: { snooze_id: ulid() } },
    acceptDrift: {
      ...node,
      body: {
        drift_id: ulid(),
        resources: [{ module: 'sample', kind: 'file-unix', identity: '/sample' }],
        reason: 'a sample',
      },
    },
    getState: node,
    listAgentOperations: { ...node, query: { limit: '5', offset: '0', status: 'succeeded', rollout: ulid() } },
    getOperationOutput: { params: { ...node.params, ...operation.params } },
    listOperations: { query: { limit: '5', offset: '0', status: 'succeeded', rollout: ulid(), filter: 'role=web' } },
    getOperation: operation,
    cancelOperation: operation,
    listSecrets: {},
    createSecret: {
      body: {
        name: 'SAMPLE',
        value: 'a value',
        description: 'a sample',
        expires_at: '2040-01-01T00:00:00Z',
        restriction: { node_ids: [agents.away], tags: 'tag.site=lab' },
      },
    },
    getSecret: { params: { name: 'SAMPLE' } },
    updateSecret: {
      params: { name: 'SAMPLE' },
      body: { value: 'another', description: null, expires_at: null, restriction: null },
    },
    removeSecret: { params: { name: 'SAMPLE' } },
    getSecretUsage: { params: { name: 'SAMPLE' } },
    listChannels: {},
    createChannel: {
      body: {
        channel_type: 'ntfy',
        name: 'sample',
        config: { topic: 'sample', url: 'https://127.0.0.1:9', priority: 3 },
      },
    },
    getChannel: channel,
    updateChannel: { ...channel, body: { name: 'sample', config: { topic: 'sample', url: 'https://127.0.0.1:9' } } },
    removeChannel: id,
    testChannel: channel,
    listDeliveries: { ...channel, query: { limit: '5' } },
    listNotifications: { query: { unread: 'true', limit: '5' } },
    readAllNotifications: {},
    readNotification: id,
    listTerminals: {
      query: {
        status: 'closed',
        node: agents.away,
        operator: 'root',
        kind: 'shell',
        prefix: '01',
        limit: '5',
        offset: '0',
      },
    },
    getTerminal: session,
    closeTerminal: session,
    attachTerminal: { ...session, body: { mode: 'read', take: false } },
    getTranscript: session,
    searchTerminals: {
      query: { pattern: 'sample', ignore_case: 'true', since: '1', node: agents.away, operator: 'root', limit: '5' },
    },
    openTerminal: {
      ...away,
      query: { cols: '80', rows: '24', shell: '/bin/sh', term: 'xterm' },
      body: { env: ['LANG=C'] },
    },
    openForward: { ...away, body: { targets: [{ host: 'localhost', port: 80 }, { path: '/run/sample.sock' }] } },
    openSshProxy: { ...away, body: { port: 22 } },
    openCopy: { ...away, body: { direction: 'read', paths: ['/var/log/syslog'] } },
    execOnAgent: { ...away, body: { command: ['true'], timeout_secs: 5, stdin: false, env: ['LANG=C'] } },
    listMaintenanceWindows: {},
    createMaintenanceWindow: {
      body: { reason: 'a sample', starts_at: hour, ends_at: hour + 60, kind: 'pause', selector: 'tag.site=nowhere' },
    },
    getMaintenanceWindow: window,
    updateMaintenanceWindow: { ...window, body: { reason: 'a sample', ends_at: hour } },
    removeMaintenanceWindow: id,
    listAuditEvents: {
      query: {
        agent: 'web-01',
        operator: 'root',
        event_type: 'agent.connected',
        category: 'agent',
        after: '2020-01-01T00:00:00Z',
        before: '2040-01-01T00:00:00Z',
        cursor: ulid(),
        limit: '5',
      },
    },
    pruneAuditEvents: { query: { before: '2020-01-01T00:00:00Z' } },
    getAuditRetention: {},
    setAuditRetention: { body: { retention_days: 90 } },
    verifyAudit: {},
    streamEvents: { query: { category: 'agent', after: '2020-01-01T00:00:00Z' } },
  };
}
