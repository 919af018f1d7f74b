/** What scripts wrote in applies, as it is stored: without secrets, and sealed where there might be some all the same. */

import { encodeTime } from 'ulid';
import { scrubber } from '../../../src/kernel/tainted.js';
import type { Output } from '../../../src/resources/result.js';
import { secretValues } from '../../../src/resources/tainted-body.js';
import type { RunItem } from '../../../src/wire/messages.js';
import type { RunContent } from '../../../src/wire/parts.js';
import { upTo } from '../../database/batches.js';
import type { NewRow, Queryable, Row } from '../../database/schema.js';
import type { OperationOutputKey } from '../../secrets/sealed-tables.js';

/** A sealed text as it is stored. */
interface SealedOutput {
  readonly output: string;
  readonly key_id: string;
}

/** Whoever has the keys for the outputs of sensitive scripts. */
export interface OutputVault {
  /** Null when it has no key: then the output is not kept. */
  seal(output: string, place: OperationOutputKey): SealedOutput | null;
  /** Null when it cannot be opened any more. */
  open(sealed: SealedOutput, place: OperationOutputKey): string | null;
}

/** An orchestrator that keeps no outputs of sensitive scripts. */
export const noVault: OutputVault = { seal: () => null, open: () => null };

/** Bytes of the outputs of one operation together; what goes beyond is not kept. */
export const MAX_OPERATION_OUTPUT = 16 * 1024 * 1024;

/**
 * Makes the function that takes the secrets of a run out of what its agent reports, which has done so already unless
 * something is wrong with it. Null for a run whose secrets are not known any more.
 */
export function itemScrubber(dispatch: RunContent | null): (item: RunItem) => RunItem {
  const secrets = dispatch === null ? [] : [...dispatch.resources, ...dispatch.removals].flatMap(secretValues);
  if (secrets.length === 0) return (item) => item;
  const scrub = scrubber(secrets);
  return ({ output, result, ...item }) => ({
    ...item,
    result: {
      ...result,
      reason: result.reason === null ? null : scrub(result.reason),
      error: result.error === null ? null : { ...result.error, message: scrub(result.error.message) },
    },
    ...(output ? { output: { ...output, stdout: scrub(output.stdout), stderr: scrub(output.stderr) } } : {}),
  });
}

interface OutputsToSave {
  readonly operationId: string;
  /** Position of the first item in the sequence of results. */
  readonly first: number;
  readonly items: readonly RunItem[];
  /** Tells of an item whether it was sent with a secret in it. */
  readonly isSecret: (index: number) => boolean;
  readonly vault: OutputVault;
}

/** Stores what the items wrote, in the transaction of their results. */
export async function saveOutputs(tx: Queryable, outputs: OutputsToSave): Promise<void> {
  const { operationId, first, items, isSecret, vault } = outputs;
  if (!items.some(({ output }) => output)) return;
  const rows: OperationOutputRow[] = [];
  let room = MAX_OPERATION_OUTPUT - (await sizeOfOperationOutputs(tx, operationId));
  for (const [offset, { index, result, output }] of items.entries()) {
    if (!output) continue;
    const key = { operation_id: operationId, position: first + offset };
    const row = outputRow(output, { room, isSealed: result.sensitive || isSecret(index), vault, key });
    room -= row.size;
    rows.push({ ...key, name: `${result.module}/${result.identity}`, ...row });
  }
  await insertOperationOutputs(tx, rows);
}

interface Storing {
  readonly room: number;
  readonly isSealed: boolean;
  readonly vault: OutputVault;
  readonly key: OperationOutputKey;
}

function outputRow(output: Output, { room, isSealed, vault, key }: Storing) {
  const whole = JSON.stringify(output);
  const text = Buffer.byteLength(whole) > room ? withoutText(output) : whole;
  const sealed = isSealed ? (vault.seal(text, key) ?? { output: withoutText(output), key_id: null }) : null;
  return { size: Buffer.byteLength(text), ...(sealed ?? { output: text, key_id: null }) };
}

/** How it ended, without what it wrote. */
const withoutText = ({ exit_code }: Output): string =>
  JSON.stringify({ stdout: '', stderr: '', exit_code, truncated: true } satisfies Output);

/** By `module/identity`. What cannot be opened any more is left out. */
export async function readOutputs(
  db: Queryable,
  operationId: string,
  vault: OutputVault,
): Promise<Record<string, Output>> {
  const outputs: [string, Output][] = [];
  for (const row of await listOperationOutputs(db, operationId)) {
    const { name, output, key_id } = row;
    const text = key_id === null ? output : vault.open({ output, key_id }, row);
    if (text !== null) outputs.push([name, JSON.parse(text)]);
  }
  return Object.fromEntries(outputs);
}

/** What scripts wrote in applies; that of sensitive ones is sealed, and this room neither seals nor opens. */
type OperationOutputRow = Row<'operation_outputs'>;
/** Outputs that are deleted in one transaction at most. */
const OUTPUTS_AT_ONCE = 1000;

export async function insertOperationOutputs(
  db: Queryable,
  rows: readonly NewRow<'operation_outputs'>[],
): Promise<void> {
  for (const row of rows) await db.insertInto('operation_outputs').values(row).execute();
}

/** In the order they came. */
export async function listOperationOutputs(db: Queryable, operationId: string): Promise<readonly OperationOutputRow[]> {
  return db
    .selectFrom('operation_outputs')
    .selectAll()
    .where('operation_id', '=', operationId)
    .orderBy('position')
    .execute();
}

/** Bytes of all outputs of an operation. */
async function sizeOfOperationOutputs(db: Queryable, operationId: string): Promise<number> {
  const { size } = await db
    .selectFrom('operation_outputs')
    .select((select) => select.fn.sum<number | null>('size').as('size'))
    .where('operation_id', '=', operationId)
    .executeTakeFirstOrThrow();
  return size ?? 0;
}

/**
 * Deletes outputs of operations that began before a time in ms, the oldest first, until they come to so many bytes;
 * returns how many.
 */
export async function deleteOutputsBefore(db: Queryable, time: number, bytes: number): Promise<number> {
  const old = await db
    .selectFrom('operation_outputs')
    .select(['operation_id', 'position', 'size'])
    // Operation IDs are ULIDs, so their order is that of time.
    .where('operation_id', '<', encodeTime(time))
    .orderBy('operation_id')
    .orderBy('position')
    .limit(OUTPUTS_AT_ONCE)
    .execute();
  const doomed = upTo(old, bytes, ({ size }) => size);
  for (const { operation_id, position } of doomed) {
    await db
      .deleteFrom('operation_outputs')
      .where('operation_id', '=', operation_id)
      .where('position', '=', position)
      .execute();
  }
  return doomed.length;
}
