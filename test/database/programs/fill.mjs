/** Makes a store with rows in every table: `node test/database/programs/fill.mjs FILE`, for a dump of the current schema. */
import { createPrivateKey } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import { AuditKey, rowOfMark, signMark } from '../../../dist/daemon/audit/checkpoint.js';
import { createAuth } from '../../../dist/daemon/auth/auth.js';
import { readChainHead } from '../../../dist/daemon/core/audit-log.js';
import { insertAuditMark } from '../../../dist/daemon/core/audit-store.js';
import { EventBus } from '../../../dist/daemon/core/event-bus.js';
import { TransactionalWriter } from '../../../dist/daemon/core/unit-of-work.js';
import { openDatabase } from '../../../dist/daemon/database/database.js';
import { insertAssignment, setAssignmentsRevision } from '../../../dist/daemon/engine/assignments/assignment-store.js';
import { putStandings } from '../../../dist/daemon/engine/convergence/standing-store.js';
import { insertDrift } from '../../../dist/daemon/engine/drift/drift-store.js';
import { addModuleRevision } from '../../../dist/daemon/engine/modules/module-store.js';
import { addOperationSources, addRolloutSources } from '../../../dist/daemon/engine/modules/source-store.js';
import { insertOperationOutputs } from '../../../dist/daemon/engine/operations/operation-outputs.js';
import { insertOperation, insertOperationResults } from '../../../dist/daemon/engine/operations/operation-store.js';
import { insertRollout, waitingAgent } from '../../../dist/daemon/engine/rollouts/rollout-store.js';
import { encodeContent, putRunContent } from '../../../dist/daemon/engine/runs/run-contents.js';
import { putAppliedResources } from '../../../dist/daemon/engine/state/applied-resource-store.js';
import { givenOneOff, putOneOffValues } from '../../../dist/daemon/engine/values/one-off-store.js';
import { addValueSetRevision, putValueSet, setValuesRevision } from '../../../dist/daemon/engine/values/value-store.js';
import { insertAgent } from '../../../dist/daemon/fleet/agent-store.js';
import { replaceMachines } from '../../../dist/daemon/fleet/contest-store.js';
import { insertEnrolmentToken } from '../../../dist/daemon/fleet/enrolment-tokens.js';
import { putFacts } from '../../../dist/daemon/fleet/fact-store.js';
import { noteGivenName } from '../../../dist/daemon/fleet/given-names.js';
import { setTag } from '../../../dist/daemon/fleet/tag-store.js';
import { insertWindow } from '../../../dist/daemon/maintenance/window-store.js';
import { insertSamples } from '../../../dist/daemon/metrics/metrics.js';
import { noteConnected } from '../../../dist/daemon/notify/absence-store.js';
import { insertChannel } from '../../../dist/daemon/notify/channel-store.js';
import { insertDeliveries } from '../../../dist/daemon/notify/delivery-store.js';
import { noteLoginAddress, putLoginStreak } from '../../../dist/daemon/notify/notification-rules.js';
import { insertNotification, markAllRead, markRead } from '../../../dist/daemon/notify/notification-store.js';
import { insertSecret } from '../../../dist/daemon/secrets/secret-store.js';
import { insertTerminal } from '../../../dist/daemon/terminal/session-store.js';
import { putUpgrade } from '../../../dist/daemon/upgrades/upgrade-store.js';
import { publicKeyOfKeyObject } from '../../../dist/src/identity/key-object.js';
import { signNonce } from '../../../dist/src/identity/login-binding.js';
import { silentLogger } from '../../../dist/src/kernel/logger.js';
import { finish } from '../../../dist/src/kernel/steps.js';

const start = Date.parse('2026-03-01T12:00:00Z');
let elapsed = 0;
const clock = {
  now: () => {
    elapsed += 1000;
    return start + elapsed;
  },
  monotonic: () => elapsed,
};
const ulid = monotonicFactory(() => 0.5);
const newId = () => ulid(start + elapsed);

const { db, close } = await openDatabase({
  server: null,
  file: process.argv[2],
  clock,
  logger: silentLogger,
  onFatal: console.error,
});
const bus = new EventBus(silentLogger);
const uow = new TransactionalWriter({ db, clock, newId, publish: (event) => bus.publish(event) });
const settings = () => ({
  session_token_expiry_secs: 3600,
  'limits.login_per_minute': 100,
  'limits.failed_login_per_minute': 10,
});
const auth = createAuth(
  { db, bus, uow, clock, randomBytes: (length) => Buffer.alloc(length, 9), logger: silentLogger, settings },
  { serverSpki: () => null },
);

const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, 7)]);
const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
const publicKey = publicKeyOfKeyObject(privateKey);
const { operator_id } = await auth.operators.bootstrap({ publicKey, username: 'alice' }, 'request-1');
const context = { address: '192.0.2.7', requestId: 'request-2' };
const nonce = Buffer.from(await auth.login.challenge(publicKey, context), 'hex');
await auth.login.verify(publicKey, signNonce(privateKey, nonce), context);

const node_id = '3f'.repeat(16);
const rollout_id = newId();
const operation_id = newId();
const token_id = newId();
const summary = { total: 1, unchanged: 0, pending: 0, changed: 1, failed: 0, skipped: 0, removed: 0 };
await uow.write(async (tx, emit) => {
  await insertAgent(tx, {
    node_id,
    public_key: '3f'.repeat(32),
    name: 'web-1',
    status: 'approved',
    created_at: start,
    updated_at: start,
    connected_at: start,
    last_seen_at: start,
    initial_hostname: 'web-1.example',
    initial_ip: '192.0.2.10',
    agent_version: '0.1.0',
    protocol_version: 1,
    attributes: { platform: 'linux' },
    state_operation_id: operation_id,
    enrolment_token_id: token_id,
  });
  await insertEnrolmentToken(tx, {
    token_id,
    secret_hash: '0'.repeat(64),
    created_at: start,
    created_by: operator_id,
    expires_at: start + 3_600_000,
    uses: 1,
    uses_left: 0,
    tags: { role: 'web' },
    auto_approve: 1,
    last_used_at: start,
    revoked_at: null,
  });
  await noteGivenName(tx, () => undefined, { name: 'web-01', node_id });
  await putUpgrade(tx, {
    node_id,
    upgrade_id: newId(),
    version: '0.2.0',
    from_version: '0.1.0',
    state: 'failed',
    wait_secs: 3600,
    waits_for: null,
    error: { code: 'upgrade_failed', message: 'an apply did not end within 3600 seconds' },
    requested_by: operator_id,
    requested_at: start,
    updated_at: start,
  });
  emit({
    type: 'agent.approved',
    actor: { id: operator_id, name: 'alice', type: 'operator' },
    target: { id: node_id, name: 'web-1', type: 'agent' },
    summary: 'web-1 was approved',
    metadata: { request_id: 'request-3' },
  });
  await setTag(tx, node_id, 'role', 'web');
  const parts = { interfaces: { eth0: { mac: '52:54:00:12:34:56', ipv4: ['192.0.2.1'], ipv6: [] } } };
  const rack = { value: { row: 3 }, error: null, since: null };
  await putFacts(tx, node_id, {
    facts: { parts, volatile: { boot_time: 1 }, own: { rack }, problem: null },
    reported_at: 1,
  });
  await addModuleRevision(tx, {
    name: 'motd',
    sha256: '0'.repeat(64),
    content: 'name: motd\n',
    definition: { name: 'motd' },
    uploaded_at: start,
    uploaded_by: operator_id,
  });
  const content = { resources: [], removals: [], failures: [], adHoc: new Set(['motd']), secrets: {}, verify: [] };
  const content_id = await putRunContent(tx, finish(encodeContent(content)));
  const oneOff = givenOneOff(
    { set: ['motd:greeting=hi'], files: [] },
    {
      layers: [
        [],
        [{ when: {}, shared: {}, set: { motd: { greeting: 'hi' } }, lines: {}, from: '--set motd:greeting' }],
      ],
      rank: null,
    },
  );
  await putOneOffValues(tx, oneOff);
  const own = { value_inputs: ['motd.greeting'], values_sha256: oneOff.sha256 };
  await insertOperation(tx, {
    ...own,
    operation_id,
    node_id,
    node_name: 'web-1',
    state: 'succeeded',
    modules: ['motd'],
    assignments: [],
    requested_by: operator_id,
    request_id: 'request-4',
    started_at: start,
    finished_at: start,
    epoch: 1,
    generation: 1,
    summary,
    error: null,
    accepted: 1,
    cancelled_by: null,
    rollout_id,
    content_id,
    expect: null,
    checks: [{ module: 'motd', name: 'page', kind: 'http', status: 'healthy', duration_ms: 7, reason: null }],
    restores: null,
  });
  await insertRollout(
    tx,
    {
      ...own,
      rollout_id,
      state: 'halted',
      reason: '1 agent has failed',
      assignment: 'web',
      selector: 'role=web',
      order: { modules: ['motd'], allowRemovals: null, confirmSecs: null },
      pace: {
        concurrency: 32,
        canary: 1,
        waves: [1, 1],
        soakSecs: 60,
        maxFailures: 1,
        onFailure: 'halt',
        skipOffline: false,
        whenOnlineSecs: 3600,
      },
      counts: { agents: 1, waiting: 0, running: 0, succeeded: 1, failed: 0, unreachable: 0, skipped: 0, reverted: 0 },
      actor: { id: operator_id, name: 'alice', type: 'operator' },
      requested_by: operator_id,
      request_id: 'request-4',
      started_at: start,
      finished_at: null,
      passed: 1,
      soaking_until: null,
      expires_at: start + 3_600_000,
    },
    [
      {
        ...waitingAgent({ rollout_id, position: 0, node_id, name: 'web-1', wave: 1, expect: null }),
        state: 'succeeded',
        operation_id,
        summary,
      },
    ],
  );
  const source = { name: 'motd', sha256: '1'.repeat(64), replaces: '0'.repeat(64) };
  const texts = [{ ...source, content: 'name: motd # tried\n', definition: { name: 'motd' } }];
  await addOperationSources(tx, operation_id, { sources: [source], texts });
  await addRolloutSources(tx, rollout_id, texts);
  await insertAssignment(tx, {
    name: 'web',
    modules: ['motd'],
    selector: 'role=web',
    description: null,
    created_at: start,
    created_by: operator_id,
    mode: 'enforce',
    counted_from: newId(),
    values: { motd: { greeting: 'hello' } },
  });
  await putValueSet(tx, {
    name: 'prod',
    revision: 2,
    sha256: '1'.repeat(64),
    content: 'values: [{when: {tag.env: prod}, set: {motd: {greeting: hi}}}]\n',
    set: {
      rank: null,
      entries: [
        { when: { 'tag.env': 'prod' }, shared: {}, set: { motd: { greeting: 'hi' } }, lines: { 'motd:greeting': 1 } },
      ],
    },
    uploaded_at: start,
    uploaded_by: operator_id,
  });
  const revision = { name: 'prod', uploaded_at: start, uploaded_by: operator_id };
  await addValueSetRevision(tx, { ...revision, revision: 1, sha256: '1'.repeat(64), content: 'values: []\n' });
  await addValueSetRevision(tx, { ...revision, revision: 2, sha256: null, content: null });
  await setValuesRevision(tx, newId());
  await putStandings(tx, [
    {
      node_id,
      standing: 'behind',
      since: start,
      reason: 'module motd',
      wanted_sha256: 'a'.repeat(64),
      counted_from: newId(),
      stopped_id: newId(),
      stopped_at: start,
      stopped_code: 'removal_guard',
      stopped_reason: 'an apply would remove 11 resources',
    },
  ]);
  await insertSamples(tx, [
    {
      node_id,
      received_at: start,
      collected_at: start / 1000,
      cpu_usage: 12.5,
      memory_used: 1,
      memory_total: 2,
      disk_used: null,
      disk_total: null,
      uptime: 3,
    },
  ]);
  await setAssignmentsRevision(tx, rollout_id);
  await insertOperationResults(tx, operation_id, 0, [
    { index: 0, result: {}, existed: false },
    { index: 1, count: 1, duration_ms: 1 },
  ]);
  const output = '{"stdout":"done\\n","stderr":"","exit_code":0,"truncated":false}';
  await insertOperationOutputs(tx, [
    { operation_id, position: 0, name: 'motd/greet', size: output.length, output, key_id: null },
  ]);
  await putAppliedResources(tx, [
    {
      node_id,
      family: 'file',
      identity_key: '/etc/motd',
      module: 'motd',
      kind: 'file-unix',
      identity: '/etc/motd',
      id: null,
      name: null,
      body_json: '{"path":"/etc/motd","content":"it\'s Sunday\\n"}',
      taint_json: null,
      origin: 'created',
      operation_id,
      applied_at: start,
      position: 0,
      ad_hoc: 1,
      secrets_json: '{"TOKEN":"00000000000000000000000000000000"}',
      listeners_json: '[{"module":"motd","kind":"script","identity":"greet","field":"rerun_on"}]',
    },
  ]);
  await insertSecret(tx, {
    secret_id: newId(),
    name: 'TOKEN',
    sealed: Buffer.alloc(61, 1).toString('base64'),
    key_id: '0123456789abcdef',
    row_version: 1,
    description: 'for the test',
    expires_at: null,
    expiry_told: 0,
    restriction: { node_ids: null, tags: 'role=web' },
    created_at: start,
    created_by: operator_id,
    updated_at: start,
    updated_by: operator_id,
  });
  await insertDrift(tx, {
    drift_id: newId(),
    node_id,
    status: 'in_sync',
    trigger: 'manual',
    requested_by: operator_id,
    operation_id,
    started_at: start,
    finished_at: start,
    has_changes: 0,
    summary,
    resources: [],
    error: null,
    content_id,
    snoozed: 0,
    accepted: 0,
  });
  const motd = { module: 'motd', kind: 'file-unix', identity: '/etc/motd' };
  await tx
    .insertInto('drift_snoozes')
    .values({
      snooze_id: newId(),
      node_id,
      resources_json: JSON.stringify([motd]),
      reason: 'until the move',
      created_at: start,
      created_by: operator_id,
      ends_at: start + 3_600_000,
    })
    .execute();
  await tx
    .insertInto('drift_accepts')
    .values({
      node_id,
      family: 'file',
      identity_key: '/etc/motd',
      ...motd,
      operation_id,
      observed: '0'.repeat(64),
      drift_id: newId(),
      reason: null,
      accepted_at: start,
      accepted_by: operator_id,
    })
    .execute();
  const reservation = { operator_id, key: 'k-1', route: 'applyAgent', request_hash: '0'.repeat(64), created_at: start };
  await tx
    .insertInto('idempotency_keys')
    .values({ ...reservation, status: null, body_json: null })
    .execute();
});
const channel_id = newId();
await insertChannel(db, {
  channel_id,
  name: 'ops',
  channel_type: 'webhook',
  sealed: Buffer.alloc(61, 2).toString('base64'),
  key_id: '0123456789abcdef',
  row_version: 1,
  created_at: start,
  created_by: operator_id,
  disabled_at: null,
  failing: 0,
  attempted_at: start,
  attempt_status: 500,
  attempt_error: 'the answer was 500',
  paused_until: start + 60_000,
  events: 'drift.*',
  min_severity: 'notice',
});
const notified = [];
for (const summary of ['one', 'two']) {
  const party = { id: 'system', name: 'orchestrator', type: 'system' };
  const row = { id: newId(), event_id: newId(), event_type: 'drift.detected', severity: 'warning', summary };
  const parties = { actor: party, target: party, metadata: {} };
  notified.push(await insertNotification(db, { ...row, ...parties, timestamp: start }));
  if (summary === 'one') await markAllRead(db, operator_id);
  else await markRead(db, operator_id, notified.at(-1));
}
const pending = { state: 'pending', attempts: 1, next_at: start + 5000, status_code: 500, error: 'the answer was 500' };
await insertDeliveries(
  db,
  notified.map((seq) => ({ channel_id, seq, ...pending, updated_at: start })),
);
await replaceMachines(db, node_id, [
  {
    node_id,
    hostname: 'web1-clone',
    address: '192.0.2.8',
    first_at: start,
    last_at: start + 60_000,
    told_at: start,
    decision: 'open',
  },
]);
await noteConnected(db, 'f'.repeat(32), start);
await putLoginStreak(db, { subject: operator_id, failures: 2, told_at: null });
await noteLoginAddress(db, { operator_id, address: '192.0.2.7', last_login_at: start });
const times = { starts_at: start, ends_at: start + 3_600_000, created_at: start };
await insertWindow(db, {
  window_id: newId(),
  reason: 'new disk',
  ...times,
  created_by: operator_id,
  told: 'started',
  kind: 'permit',
  selector: null,
  assignments: ['web'],
});
const session = { session_id: newId(), node_id: 'f'.repeat(32), node_name: 'web-1', operator_id, operator: 'ada' };
await insertTerminal(db, {
  ...session,
  kind: 'shell',
  user: 'root',
  shell: '/bin/sh',
  command: null,
  cols: 80,
  rows: 24,
  term: 'xterm',
  status: 'active',
  reason: null,
  exit_code: null,
  exit_signal: null,
  opened_at: start,
  closed_at: null,
  recording: 'off',
  transcript: null,
  transcript_sha256: null,
  output_bytes: 0,
  resume_hash: '0'.repeat(64),
  resume_operator_id: operator_id,
});
const { seq, hash } = await readChainHead(db);
const mark = signMark(new AuditKey(privateKey), { kind: 'checkpoint', epoch: 1, seq, hash, time: start });
await insertAuditMark(db, rowOfMark(mark));
await close();
