import { describe, expect, it } from 'vitest';
import type { RecordedEvent } from '../../daemon/core/audit-log.js';
import { type EventType, SYSTEM } from '../../daemon/core/domain-event.js';
import { deleteMeta, getMeta, setMeta } from '../../daemon/database/meta.js';
import type { NewRow } from '../../daemon/database/schema.js';
import { findDrift, insertDrift, latestDrift, listDrift } from '../../daemon/engine/drift/drift-store.js';
import {
  deleteAppliedResources,
  listAppliedResources,
  putAppliedResources,
} from '../../daemon/engine/state/applied-resource-store.js';
import { insertAgent } from '../../daemon/fleet/agent-store.js';
import {
  completeIdempotencyKey,
  deleteIdempotencyKeysBefore,
  findIdempotencyKey,
  KeyedRequests,
} from '../../daemon/http/idempotency.js';
import { summarize } from '../../src/resources/result.js';
import { agentRow, node, openStore, unchanged } from '../support/database.js';

const applied = (path: string, change: Partial<NewRow<'applied_resources'>> = {}): NewRow<'applied_resources'> => ({
  node_id: node('a'),
  family: 'file',
  identity_key: path,
  module: 'web',
  kind: 'file-unix',
  identity: path,
  id: null,
  name: null,
  body_json: '{}',
  taint_json: null,
  origin: 'created',
  operation_id: 'o-1',
  applied_at: 1,
  position: 0,
  ad_hoc: 0,
  ...change,
});

describe('the believed state', () => {
  it('is put, replaced by key, and listed in the order of application', async () => {
    const { db } = await openStore();
    await insertAgent(db, agentRow({ node_id: node('a') }));
    await insertAgent(db, agentRow({ node_id: node('b') }));
    const paths = async () =>
      (await listAppliedResources(db, node('a'))).map((row) => `${row.identity_key} ${row.module}`);
    await putAppliedResources(db, [applied('/b', { position: 1 }), applied('/a', { position: 0 })]);
    await putAppliedResources(db, [
      applied('/a', { position: 5, module: 'base' }),
      applied('/c', { node_id: node('b') }),
    ]);
    expect(await paths()).toEqual(['/b web', '/a base']);
    await deleteAppliedResources(db, node('a'), [
      { family: 'file', identity_key: '/b' },
      { family: 'group', identity_key: '/a' },
    ]);
    expect(await paths()).toEqual(['/a base']);
    expect(await listAppliedResources(db, node('b'))).toHaveLength(1);
  });

  it('may be large', async () => {
    const { db } = await openStore();
    await insertAgent(db, agentRow({ node_id: node('a') }));
    const rows = Array.from({ length: 5000 }, (_, position) => applied(`/f/${position}`, { position }));
    await putAppliedResources(db, rows);
    await putAppliedResources(db, rows);
    await deleteAppliedResources(db, node('a'), rows.slice(1));
    expect((await listAppliedResources(db, node('a'))).map((row) => row.identity_key)).toEqual(['/f/0']);
  });
});

describe('drift records', () => {
  it('are listed newest first, by node, status and time', async () => {
    const { db } = await openStore();
    const record = (drift_id: string, node_id: string, status: string, started_at: number) =>
      insertDrift(db, {
        drift_id,
        node_id,
        status,
        trigger: 'manual',
        requested_by: null,
        operation_id: 'o-1',
        started_at,
        finished_at: started_at,
        has_changes: status === 'drifted' ? 1 : 0,
        summary: summarize([]),
        resources: [unchanged('/f')],
        error: null,
        content_id: null,
        snoozed: 0,
        accepted: 0,
      });
    await record('D1', node('a'), 'drifted', 100);
    await record('D2', node('b'), 'drifted', 200);
    await record('D3', node('a'), 'in_sync', 300);
    const ids = async (filter: object) =>
      (await listDrift(db, { limit: 10, ...filter })).map((row) => row.drift_id).join(' ');
    expect(await ids({})).toBe('D3 D2 D1');
    expect(await ids({ limit: 1 })).toBe('D3');
    expect(await ids({ nodeId: node('a') })).toBe('D3 D1');
    expect(await ids({ status: 'drifted' })).toBe('D2 D1');
    expect(await ids({ nodeId: node('a'), status: 'drifted', since: 'D2' })).toBe('');
    expect((await listDrift(db, { limit: 1 }))[0]).not.toHaveProperty('resources');
    expect(await latestDrift(db, { nodeId: node('a') })).toMatchObject({
      drift_id: 'D3',
      resources: [unchanged('/f')],
    });
    expect(await latestDrift(db, { nodeId: node('c') })).toBeNull();
    expect(await findDrift(db, 'D1')).toMatchObject({ has_changes: 1 });
    expect(await findDrift(db, 'D9')).toBeNull();
  });
});

describe('an idempotency key', () => {
  const slot = { operator_id: 'alice', key: 'k' };
  const claim = { ...slot, route: 'applyAgent', request_hash: 'h', created_at: 1000 };
  const event = (request_id: string, type: EventType = 'module.uploaded'): RecordedEvent => ({
    id: 'E1',
    seq: 1,
    timestamp: 1,
    type,
    actor: SYSTEM,
    target: SYSTEM,
    summary: 'alice uploaded web',
    metadata: { request_id },
  });

  it('is stored with the first event of its request, and keeps the answer', async () => {
    const { db } = await openStore();
    const running = new KeyedRequests();
    const beginning = running.enter('r1', claim);
    await running.record(db, [event('r2'), event('r1', 'secret.used')]);
    expect(await findIdempotencyKey(db, slot, 0)).toBeNull();
    await running.record(db, [event('r1'), event('r1')]);
    expect(await findIdempotencyKey(db, slot, 0)).toMatchObject({ ...claim, status: null });
    expect(beginning.isCommitted).toBe(false);
    running.committed(event('r1'));
    expect(beginning.isCommitted).toBe(true);
    await completeIdempotencyKey(db, slot, { status: 201, body_json: '{}' });
    await running.record(db, [event('r1')]);
    expect(await findIdempotencyKey(db, slot, 1000)).toMatchObject({ status: 201, body_json: '{}' });
    expect(await findIdempotencyKey(db, { ...slot, operator_id: 'bob' }, 0)).toBeNull();
  });

  it('is another one when it is too old, and is deleted', async () => {
    const { db } = await openStore();
    const running = new KeyedRequests();
    running.enter('r1', claim);
    await running.record(db, [event('r1')]);
    expect(await findIdempotencyKey(db, slot, 1001)).toBeNull();
    running.enter('r2', { ...claim, created_at: 5000 });
    await running.record(db, [event('r2')]);
    expect(await findIdempotencyKey(db, slot, 1001)).toMatchObject({ status: null, created_at: 5000 });
    expect(await deleteIdempotencyKeysBefore(db, 5000)).toBe(0);
    expect(await deleteIdempotencyKeysBefore(db, 5001)).toBe(1);
  });
});

describe('single values', () => {
  it('are set, changed and deleted', async () => {
    const { db } = await openStore();
    expect(await getMeta(db, 'epoch')).toBeNull();
    await setMeta(db, 'epoch', '1');
    await setMeta(db, 'epoch', '2');
    expect(await getMeta(db, 'epoch')).toBe('2');
    await deleteMeta(db, 'epoch');
    expect(await getMeta(db, 'epoch')).toBeNull();
  });
});
