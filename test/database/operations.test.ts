import { describe, expect, it } from 'vitest';
import {
  countOperations,
  findOperation,
  insertOperation,
  insertOperationResults,
  listOperationResults,
  listOperations,
  listOperationsInStates,
  positionAfter,
  resultsOf,
  updateOperation,
} from '../../daemon/engine/operations/operation-store.js';
import { node, openStore, operationRow, unchanged } from '../support/database.js';

async function history() {
  const { db } = await openStore();
  const rows = [
    { operation_id: 'A1', node_id: node('a'), state: 'succeeded', started_at: 100 },
    { operation_id: 'A2', node_id: node('b'), state: 'failed', started_at: 200 },
    { operation_id: 'A3', node_id: node('a'), state: 'running', started_at: 300 },
    { operation_id: 'A4', node_id: node('a'), state: 'recovering', started_at: 400 },
    { operation_id: 'A5', node_id: node('b'), state: 'queued', started_at: 500 },
  ];
  for (const row of rows) await insertOperation(db, operationRow(row));
  return db;
}
const ids = (rows: readonly { readonly operation_id: string }[]) => rows.map((row) => row.operation_id).join(' ');

describe('operations', () => {
  it('are listed most recent first, by node, state and time', async () => {
    const db = await history();
    expect(ids(await listOperations(db, { limit: 10 }))).toBe('A5 A4 A3 A2 A1');
    expect(ids(await listOperations(db, { limit: 2, offset: 1 }))).toBe('A4 A3');
    expect(ids(await listOperations(db, { limit: 10, nodeId: node('a') }))).toBe('A4 A3 A1');
    expect(ids(await listOperations(db, { limit: 10, states: ['running', 'recovering'] }))).toBe('A4 A3');
    expect(ids(await listOperations(db, { limit: 10, nodeId: node('a'), since: 'A3' }))).toBe('A4 A3');
    expect(await countOperations(db)).toBe(5);
    expect(await countOperations(db, { nodeId: node('a'), states: ['running'] })).toBe(1);
    expect(await countOperations(db, { since: 'B' })).toBe(0);
  });

  it('are found by their ID, and by their state with the oldest first', async () => {
    const db = await history();
    expect(await findOperation(db, 'A1')).toMatchObject({ operation_id: 'A1', accepted: 0 });
    expect(await findOperation(db, 'A9')).toBeNull();
    expect(ids(await listOperationsInStates(db, ['running', 'queued', 'recovering']))).toBe('A3 A4 A5');
    expect(ids(await listOperationsInStates(db, ['running', 'queued'], node('b')))).toBe('A5');
  });

  it('change only from the states that are expected', async () => {
    const db = await history();
    expect(await updateOperation(db, 'A3', { state: 'succeeded', finished_at: 900 }, ['running'])).toBe(true);
    expect(await updateOperation(db, 'A3', { state: 'failed' }, ['running', 'recovering'])).toBe(false);
    expect(await updateOperation(db, 'A3', { accepted: 1 })).toBe(true);
    expect(await updateOperation(db, 'A9', { accepted: 1 })).toBe(false);
    expect(await findOperation(db, 'A3')).toMatchObject({ state: 'succeeded', finished_at: 900, accepted: 1 });
  });

  it('have results in order, of any number, each position once', async () => {
    const db = await history();
    const results = Array.from({ length: 450 }, (_, index) => ({
      index,
      result: unchanged(`/f/${index}`),
      existed: index % 2 === 1,
    }));
    await insertOperationResults(db, 'A3', 0, results);
    await insertOperationResults(db, 'A3', 450, []);
    const rows = await listOperationResults(db, 'A3');
    expect(rows.flatMap((row) => resultsOf(row, []))).toEqual(results);
    const page = await listOperationResults(db, 'A3', { from: 447, limit: 2 });
    expect(page.map(({ item_index }) => item_index)).toEqual([447, 448]);
    expect(page.map(positionAfter)).toEqual([448, 449]);
    expect(await listOperationResults(db, 'A4')).toEqual([]);
    await expect(insertOperationResults(db, 'A3', 0, results.slice(0, 1))).rejects.toThrow(/unique/i);
    await expect(insertOperationResults(db, 'A9', 0, results.slice(0, 1))).rejects.toThrow(/foreign key/i);
  });

  it('store consecutive unchanged results in one row', async () => {
    const db = await history();
    const resources = Array.from({ length: 100 }, (_, index) => ({
      ...{ module: 'web', kind: 'file-unix', identity: `/f/${index}`, id: null, name: null },
      ...{ body: {}, after: [] },
    }));
    const failed = { index: 60, existed: false, result: { ...unchanged('/f/60'), status: 'failed' as const } };
    await insertOperationResults(db, 'A3', 0, [{ index: 0, count: 60, duration_ms: 1 }, failed]);
    await insertOperationResults(db, 'A3', 61, [{ index: 61, count: 39, duration_ms: 2 }]);
    const rows = await listOperationResults(db, 'A3');
    expect(rows.map((row) => [row.position, positionAfter(row)])).toEqual([
      [0, 60],
      [60, 61],
      [61, 100],
    ]);
    const items = rows.flatMap((row) => resultsOf(row, resources));
    expect(items.map(({ index }) => index)).toEqual(resources.map((_, index) => index));
    expect(items[59]).toEqual({ index: 59, existed: true, result: unchanged('/f/59') });
    expect(items[60]).toEqual(failed);
    expect(items[61]).toEqual({ index: 61, existed: true, result: { ...unchanged('/f/61'), duration_ms: 2 } });
  });
});
