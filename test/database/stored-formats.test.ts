/**
 * What the orchestrator keeps beside its tables' columns: JSON in the store, sealed values with their key file, and signed
 * places of the audit log. The tables themselves are held by `migrations.test.ts`.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AUDIT_HEAD_FILE, AuditHead, readHead } from '../../daemon/audit/audit-head.js';
import {
  AuditKey,
  checkpointText,
  isSignedWith,
  markOfRow,
  rowOfMark,
  signMark,
} from '../../daemon/audit/checkpoint.js';
import { type BackupNote, parseNote } from '../../daemon/backup/backup-note.js';
import type { RecordedEvent } from '../../daemon/core/audit-log.js';
import type { Party } from '../../daemon/core/domain-event.js';
import { driftDetail, findDrift } from '../../daemon/engine/drift/drift-store.js';
import { epochOf } from '../../daemon/engine/epoch.js';
import { operationView } from '../../daemon/engine/operations/operation-state.js';
import { findOperation, listOperationResults, resultsOf } from '../../daemon/engine/operations/operation-store.js';
import { loadOperation } from '../../daemon/engine/operations/recovery.js';
import { RunContents } from '../../daemon/engine/runs/run-contents.js';
import { appliedResource, listAppliedResources, removalOf } from '../../daemon/engine/state/applied-resource-store.js';
import { findFacts, type StoredFact, type StoredFacts } from '../../daemon/fleet/fact-store.js';
import { messageOfRow } from '../../daemon/notify/message.js';
import { findNotificationBySeq } from '../../daemon/notify/notification-store.js';
import { ChannelCipher, OutputCipher } from '../../daemon/secrets/ciphers.js';
import { createKeyFile, readKeyFile, type SecretKeys } from '../../daemon/secrets/key-file.js';
import { Keyring } from '../../daemon/secrets/keyring.js';
import { findSecret, sealedRecordOf, secretView } from '../../daemon/secrets/secret-store.js';
import type { Restriction } from '../../src/contract/secrets.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { compileModule } from '../../src/language/compile-module.js';
import { parseModule } from '../../src/language/parse-module.js';
import { resolveCompiled } from '../../src/language/resolve.js';
import type { CheckResult, DesiredCheck } from '../../src/resources/checks/check.js';
import type { DesiredResource, Removal } from '../../src/resources/desired.js';
import {
  type Output,
  OutputSchema,
  type ResourceResult,
  ResourceResultSchema,
  type Summary,
} from '../../src/resources/result.js';
import { UnchangedSchema } from '../../src/resources/run-results.js';
import { ManualClock, openStore, Sqlite } from '../support/database.js';
import { fixedKey } from '../support/identity.js';
import { type Complete, describeReleased } from '../support/released.js';

const ID = '01JQ2Z6T0V5X8Y4M3N7P9R1S2T';
const NODE = '3f'.repeat(16);
const START = Date.parse('2026-03-01T12:00:00Z');

const party: Complete<Party> = { id: 'a'.repeat(32), name: 'ada', type: 'operator' };
const fact: Required<StoredFact> = { value: { row: 3 }, error: 'it took longer than 5 s', since: START };
const facts: Required<StoredFacts> = {
  parts: {
    interfaces: { eth0: { mac: '52:54:00:12:34:56', ipv4: ['192.0.2.1'], ipv6: [] } },
    disks: {},
    mounts: [],
    packages: { nginx: '1.22.1-9' },
  },
  volatile: { boot_time: 1, free_mb: { '/': 7 } },
  own: { rack: fact },
  problem: 'it has 80 entries',
  asked: ['nginx', 'postgresql'],
};
const address = { module: 'site', kind: 'file-unix', identity: '/etc/motd', id: 'motd', name: 'the message' };
const body = { path: '/etc/motd', content: 'one ********' };
const taint = { '/content': [{ start: 4, end: 12, secret: 'TOKEN', tag: 'ab12' }] };
const resource: Complete<DesiredResource> = { ...address, body, taint, after: [], triggers: { rerun_on: [0] } };
const removal: Complete<Removal> = { ...address, body, taint, origin: 'created' };
const check: Complete<DesiredCheck> = {
  module: 'site',
  name: 'page',
  kind: 'http',
  within_secs: 30,
  timeout_secs: 10,
  body: { url: 'http://127.0.0.1/' },
  taint: {},
};
const checked: Complete<CheckResult> = {
  module: 'site',
  name: 'page',
  kind: 'http',
  status: 'unhealthy',
  duration_ms: 30_000,
  reason: 'it answered 503',
};
const error = { code: 'disk_full', message: 'the disk is full' };
const result: Complete<ResourceResult> = {
  ...address,
  action: 'update',
  status: 'failed',
  changes: [{ field: 'content', before: 'a', after: 'b' }],
  diff: '@@ -1 +1 @@\n-a\n+b\n',
  sensitive: true,
  reason: 'it was triggered',
  error,
  duration_ms: 12,
};
const summary: Complete<Summary> = {
  total: 6,
  unchanged: 1,
  pending: 2,
  changed: 1,
  failed: 1,
  skipped: 1,
  removed: 1,
};
const output: Complete<Output> = { stdout: 'done\n', stderr: '', exit_code: 0, truncated: false };
const restriction: Complete<Restriction> = { node_ids: [NODE], tags: 'role=web' };
const note: Complete<BackupNote> = { made_at: START, version: '0.1.0', public_key: 'ab'.repeat(32) };
const event: Complete<Omit<RecordedEvent, 'metadata'>> & Pick<RecordedEvent, 'metadata'> = {
  type: 'agent.disconnected',
  actor: party,
  target: { id: NODE, name: 'web-01', type: 'agent' },
  summary: 'web-01 was disconnected',
  metadata: { reason: 'closed' },
  id: ID,
  seq: 41,
  timestamp: START,
};
const secrets = { TOKEN: '0'.repeat(32) };

const MODULE = `name: site
supports: [{platform: linux, tag.role: web}]
templates:
  - {id: greeting, content: "host \${{ agent.name }}\\n"}
resources:
  - id: dir
    name: the directory
    resource: {directory-unix: {path: /etc/site}}
  - id: conf
    depends_on: [dir]
    variants:
      - when: {distro: debian}
        resource: {file-unix: {path: /etc/site/conf, template: greeting}}
      - when: {distro: debian, version: "12"}
        resource: {file-unix: {path: /etc/site/conf, content: "token \${{ secrets.TOKEN }}\\n"}}
  - id: greet
    resource: {file-unix: {path: /etc/site/greet, template: greeting}}
  - id: run
    resource: {script: {program: sh, apply: "true", rerun_on: [conf]}}
verify:
  - {name: page, within: 1m, timeout: 5s, when: {distro: debian}, http: {url: "http://\${{ agent.name }}/"}}
`;

/** Writes the texts of JSON columns and of values in `meta`, and the schema of their store. */
function writeColumns(directory: string): void {
  const columns = {
    'agents.attributes_json': { platform: 'linux' },
    'assignments.modules_json': ['site'],
    'module_revisions.definition_json': parseModule(MODULE).definition,
    'operations.modules_json': ['site'],
    'operations.assignments_json': ['web'],
    'run_contents.content_json': {
      resources: [resource],
      removals: [removal],
      failures: [result],
      ad_hoc: ['site'],
      secrets,
      verify: [check],
    },
    'operations.summary_json': summary,
    'operations.error_json': error,
    'operations.cancelled_by_json': party,
    'operations.checks_json': [checked],
    'operations.facts_json': { 'attributes.memory_mb': 4096, 'facts.rack.row': 3, 'facts.none': null },
    'agent_facts.facts_json': facts,
    'operation_results.result_json': result,
    'operation_outputs.output': output,
    'applied_resources.body_json': body,
    'applied_resources.taint_json': taint,
    'applied_resources.secrets_json': secrets,
    'secrets.restriction_json': restriction,
    'drift_records.summary_json': {},
    'drift_records.error_json': error,
    'drift_records.resources_json': [{ index: 0, count: 1, duration_ms: 12 }],
    'notifications.actor_json': event.actor,
    'notifications.target_json': event.target,
    'notifications.metadata_json': event.metadata,
    'agent_absences.event_json': event,
    'terminal_sessions.command_json': ['echo', 'here'],
    'meta.backup': note,
  };
  const texts = {
    ...Object.fromEntries(Object.entries(columns).map(([name, value]) => [name, JSON.stringify(value)])),
    'operations.expect': 'c'.repeat(64),
    'meta.engine.generation': '2.41',
    schema: '24',
  };
  writeFileSync(join(directory, 'columns.json'), JSON.stringify(texts, null, 1));
}

/** Puts the texts into the rows of a store of their schema, and reads these rows. */
async function readColumns(directory: string): Promise<unknown> {
  const texts: Readonly<Record<string, string>> = JSON.parse(readFileSync(join(directory, 'columns.json'), 'utf8'));
  const text = (name: string): string => texts[name] ?? '';
  const file = join(directory, 'orch.db');
  const connection = new Sqlite(file);
  connection.exec(readFileSync(join(import.meta.dirname, `databases/${text('schema')}.sql`), 'utf8'));
  for (const [name, value] of Object.entries(texts)) {
    const [table, column] = name.split('.');
    if (column !== undefined && table !== 'meta')
      connection.prepare(`update "${table}" set "${column}" = ?`).run(value);
  }
  const idOf = (table: string, column: string) =>
    String(connection.prepare(`select ${column} from ${table}`).pluck().get());
  const [id, driftId] = [idOf('operations', 'operation_id'), idOf('drift_records', 'drift_id')];
  connection.close();
  const { db } = await openStore({ file });
  const operation = some(await findOperation(db, id));
  const contents = new RunContents();
  const clock = new ManualClock();
  const { content: stored } = some(await loadOperation({ db, clock, contents }, id));
  // Earlier releases know no health checks.
  const { verify, ...rest } = stored;
  const content = { ...rest, ...(verify.length > 0 && { verify }) };
  const applied = await listAppliedResources(db, NODE);
  const module = compileModule({ name: 'site', definition: JSON.parse(text('module_revisions.definition_json')) });
  const attributes = {
    ...JSON.parse(text('agents.attributes_json')),
    distro: 'debian',
    version: '12',
    hostname: 'web',
  };
  const agent = { node_id: NODE, name: 'web-01', attributes, tags: { role: 'web' } };
  const resolved = resolveCompiled({ modules: [module], agent, secret: () => ({ value: 'abc', tag: 'ab12' }) });
  return {
    operation: operationView(operation),
    ...(operation.checks !== null && { checks: operation.checks }),
    ...(operation.facts !== null && { facts: operation.facts, reported: await findFacts(db, NODE) }),
    results: (await listOperationResults(db, id))
      .flatMap((row) => resultsOf(row, content.resources))
      .map(({ result }) => result),
    content: { ...content, adHoc: [...content.adHoc], expect: operation.expect },
    applied: applied.map((row) => [appliedResource(row), removalOf(row)]),
    drift: driftDetail(some(await findDrift(db, driftId)), content.resources),
    message: messageOfRow(some(await findNotificationBySeq(db, 1))),
    secret: secretView(some(await findSecret(db, 'TOKEN'))),
    backup: parseNote(text('meta.backup')),
    epoch: epochOf(text('meta.engine.generation')),
    resolved: resolved.resources,
    ...(resolved.checks.length > 0 && { resolvedChecks: resolved.checks }),
  };
}

function some<T>(found: T | null): T {
  if (found === null) throw new Error('the row is gone');
  return found;
}

const keys: SecretKeys = {
  hashKey: Buffer.alloc(32, 1),
  sealing: [
    { id: '0123456789abcdef', key: Buffer.alloc(32, 2) },
    { id: 'fedcba9876543210', key: Buffer.alloc(32, 3) },
  ],
};
const keyringOf = (directory: string): Keyring => {
  const file = join(directory, 'secrets.key');
  return new Keyring({ file, keys: readKeyFile(file) ?? keys, randomBytes: (length) => Buffer.alloc(length, 9) });
};
const secretRow = { secret_id: ID, name: 'TOKEN', row_version: 3 };
const channelRow = { channel_id: ID, row_version: 2 };
const outputRow = { operation_id: ID, position: 4 };

function writeSecrets(directory: string): void {
  createKeyFile(join(directory, 'secrets.key'), keys);
  const keyring = keyringOf(directory);
  const sealed = {
    secret: keyring.seal('the value', sealedRecordOf(secretRow as Parameters<typeof sealedRecordOf>[0])),
    channel: new ChannelCipher({ keyring }).seal('{"url":"https://hook.example"}', channelRow),
    output: new OutputCipher({ keyring, logger: silentLogger }).seal(JSON.stringify(output), outputRow),
    hash: keyring.hash('TOKEN', 'the value'),
    digest: keyring.digest('a request'),
  };
  writeFileSync(join(directory, 'sealed.json'), JSON.stringify(sealed, null, 1));
}

function readSecrets(directory: string): unknown {
  const keyring = keyringOf(directory);
  const sealed = JSON.parse(readFileSync(join(directory, 'sealed.json'), 'utf8'));
  return {
    secret: keyring.open(sealed.secret, sealedRecordOf(secretRow as Parameters<typeof sealedRecordOf>[0])),
    channel: new ChannelCipher({ keyring }).open({ ...sealed.channel, ...channelRow }),
    output: new OutputCipher({ keyring, logger: silentLogger }).open(sealed.output, outputRow),
    isSameHash: sealed.hash === keyring.hash('TOKEN', 'the value'),
    isSameDigest: sealed.digest === keyring.digest('a request'),
    keyIds: readKeyFile(join(directory, 'secrets.key'))?.sealing.map(({ id }) => id),
  };
}

async function writeMarks(directory: string): Promise<void> {
  const key = new AuditKey(fixedKey());
  const clock = new ManualClock();
  const head = new AuditHead({ file: join(directory, AUDIT_HEAD_FILE), key, clock, logger: silentLogger });
  head.open(2, { seq: 40, hash: 'a'.repeat(64) });
  head.committed({ seq: 41, hash: 'b'.repeat(64) });
  await head.close();
  const marks = (['checkpoint', 'cut'] as const).map((kind) =>
    signMark(key, { kind, epoch: 2, seq: 40, hash: 'a'.repeat(64), time: START }),
  );
  writeFileSync(join(directory, 'marks.json'), JSON.stringify(marks.map(rowOfMark), null, 1));
}

function readMarks(directory: string): unknown {
  const key = new AuditKey(fixedKey());
  const rows: readonly ReturnType<typeof rowOfMark>[] = JSON.parse(readFileSync(join(directory, 'marks.json'), 'utf8'));
  const marks = rows.map(markOfRow);
  return {
    head: readHead(join(directory, AUDIT_HEAD_FILE), key),
    marks: marks.map((mark) => ({ ...mark, isSigned: isSignedWith(key, mark) })),
    checkpoint: marks.map(checkpointText)[0],
  };
}

describeReleased(import.meta.url, [
  {
    name: 'columns',
    revision: 6,
    version: null,
    shapes: { unchanged: UnchangedSchema, result: ResourceResultSchema, output: OutputSchema },
    write: writeColumns,
    read: readColumns,
  },
  {
    name: 'secrets',
    revision: 1,
    version: 'HEAD in daemon/secrets/key-file.ts and VERSION in daemon/secrets/keyring.ts',
    write: writeSecrets,
    read: readSecrets,
  },
  {
    name: 'audit-marks',
    revision: 1,
    version: 'HEADS in daemon/audit/checkpoint.ts',
    write: writeMarks,
    read: readMarks,
  },
]);
