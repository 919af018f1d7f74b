import { describe, expect, it } from 'vitest';
import {
  countOperationResults,
  countOperations,
  findOperation,
  findOperationHead,
  insertOperation,
  insertOperationResults,
  listOperationResults,
  listOperations,
  listOperationsInStates,
  resultOf,
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

  it('are found with and without what was dispatched', async () => {
    const db = await history();
    expect(await findOperation(db, 'A1')).toMatchObject({ desired_json: '[]', accepted: 0 });
    expect(await findOperationHead(db, 'A1')).not.toHaveProperty('desired_json');
    expect(await findOperation(db, 'A9')).toBeNull();
    expect(await findOperationHead(db, 'A9')).toBeNull();
    expect(ids(await listOperationsInStates(db, ['running', 'queued', 'recovering']))).toBe('A3 A4 A5');
    expect(ids(await listOperationsInStates(db, ['running', 'queued'], node('b')))).toBe('A5');
  });

  it('change only from the states that are expected', async () => {
    const db = await history();
    expect(await updateOperation(db, 'A3', { state: 'succeeded', finished_at: 900 }, ['running'])).toBe(true);
    expect(await updateOperation(db, 'A3', { state: 'failed' }, ['running', 'recovering'])).toBe(false);
    expect(await updateOperation(db, 'A3', { accepted: 1 })).toBe(true);
    expect(await updateOperation(db, 'A9', { accepted: 1 })).toBe(false);
    expect(await findOperationHead(db, 'A3')).toMatchObject({ state: 'succeeded', finished_at: 900, accepted: 1 });
  });

  it('have results in order, of any number, each position once', async () => {
    const db = await history();
    const results = Array.from({ length: 450 }, (_, position) => ({
      operation_id: 'A3',
      position,
      item_index: position,
      result: unchanged(`/f/${position}`),
      existed: position % 2,
    }));
    await insertOperationResults(db, results);
    await insertOperationResults(db, []);
    expect(await countOperationResults(db, 'A3')).toBe(450);
    expect((await listOperationResults(db, 'A3', 448)).map((row) => resultOf(row).identity)).toEqual([
      '/f/448',
      '/f/449',
    ]);
    expect(await listOperationResults(db, 'A4')).toEqual([]);
    await expect(insertOperationResults(db, results.slice(0, 1))).rejects.toThrow('UNIQUE');
    await expect(
      insertOperationResults(
        db,
        results.slice(0, 1).map((row) => ({ ...row, operation_id: 'A9' })),
      ),
    ).rejects.toThrow('FOREIGN KEY');
  });
});
