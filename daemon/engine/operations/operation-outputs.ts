/** Stores outputs of scripts in applies: known secrets are scrubbed, and outputs that may still hold secrets are sealed. */

import { encodeTime } from 'ulid';
import { scrubber } from '../../../src/kernel/tainted.js';
import type { Output } from '../../../src/resources/result.js';
import { countResults, isUnchanged } from '../../../src/resources/run-results.js';
import { secretValues } from '../../../src/resources/tainted-body.js';
import type { RunEntry, RunItem } from '../../../src/wire/messages.js';
import type { RunContent } from '../../../src/wire/parts.js';
import { upTo } from '../../database/batches.js';
import type { NewRow, Queryable, Row } from '../../database/schema.js';
import { storedJson } from '../../database/stored-json.js';
import type { OperationOutputKey } from '../../secrets/sealed-tables.js';

/** A sealed text as it is stored. */
interface SealedOutput {
  readonly output: string;
  readonly key_id: string;
}

/** Encrypts and decrypts the outputs of sensitive scripts. */
export interface OutputCipher {
  seal(output: string, place: OperationOutputKey): SealedOutput;
  /** Returns null when the text can no longer be decrypted. */
  open(sealed: SealedOutput, place: OperationOutputKey): string | null;
}

/** Maximum bytes of all outputs of one operation; the excess is not kept. */
export const MAX_OPERATION_OUTPUT = 16 * 1024 * 1024;

/**
 * Returns a function that removes the secrets of a run from reported items, as a second line of defence after the agent.
 * `dispatch` is null for a run whose secrets are no longer known.
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
  /** Position of the first result. */
  readonly first: number;
  readonly entries: readonly RunEntry[];
  /** Returns true for an item that was sent with a secret in it. */
  readonly isSecret: (index: number) => boolean;
  readonly cipher: OutputCipher;
}

/** Stores the outputs among results, in the transaction of these results. */
export async function saveOutputs(tx: Queryable, outputs: OutputsToSave): Promise<void> {
  const { operationId, first, entries, isSecret, cipher } = outputs;
  if (!entries.some((entry) => !isUnchanged(entry) && entry.output)) return;
  const rows: OperationOutputRow[] = [];
  let room = MAX_OPERATION_OUTPUT - (await sizeOfOperationOutputs(tx, operationId));
  let position = first;
  for (const entry of entries) {
    const key = { operation_id: operationId, position };
    position += countResults([entry]);
    if (isUnchanged(entry) || !entry.output) continue;
    const { index, result, output } = entry;
    const row = outputRow(output, { room, isSealed: result.sensitive || isSecret(index), cipher, key });
    room -= row.size;
    rows.push({ ...key, name: `${result.module}/${result.identity}`, ...row });
  }
  await insertOperationOutputs(tx, rows);
}

interface Storing {
  /** Bytes left for outputs of this operation. */
  readonly room: number;
  readonly isSealed: boolean;
  readonly cipher: OutputCipher;
  readonly key: OperationOutputKey;
}

function outputRow(output: Output, { room, isSealed, cipher, key }: Storing) {
  const whole = JSON.stringify(output);
  const text = Buffer.byteLength(whole) > room ? withoutText(output) : whole;
  return { size: Buffer.byteLength(text), ...(isSealed ? cipher.seal(text, key) : { output: text, key_id: null }) };
}

/** Returns the exit code without the output. */
const withoutText = ({ exit_code }: Output): string =>
  JSON.stringify({ stdout: '', stderr: '', exit_code, truncated: true } satisfies Output);

/** Returns outputs by `module/identity`. Leaves out those that can no longer be decrypted. */
export async function readOutputs(
  db: Queryable,
  operationId: string,
  cipher: OutputCipher,
): Promise<Record<string, Output>> {
  const outputs: [string, Output][] = [];
  for (const row of await listOperationOutputs(db, operationId)) {
    const { name, output, key_id } = row;
    const text = key_id === null ? output : cipher.open({ output, key_id }, row);
    if (text !== null) outputs.push([name, storedJson(text)]);
  }
  return Object.fromEntries(outputs);
}

/** A stored output. Sensitive ones are sealed; the functions below neither seal nor open them. */
type OperationOutputRow = Row<'operation_outputs'>;
/** Maximum number of outputs deleted in one transaction. */
const OUTPUTS_AT_ONCE = 1000;

export async function insertOperationOutputs(
  db: Queryable,
  rows: readonly NewRow<'operation_outputs'>[],
): Promise<void> {
  for (const row of rows) await db.insertInto('operation_outputs').values(row).execute();
}

/** Returns the outputs in the order they arrived. */
export async function listOperationOutputs(db: Queryable, operationId: string): Promise<readonly OperationOutputRow[]> {
  return db
    .selectFrom('operation_outputs')
    .selectAll()
    .where('operation_id', '=', operationId)
    .orderBy('position')
    .execute();
}

/** Returns the bytes of all outputs of an operation. */
async function sizeOfOperationOutputs(db: Queryable, operationId: string): Promise<number> {
  const { size } = await db
    .selectFrom('operation_outputs')
    .select((select) => select.fn.sum<number | null>('size').as('size'))
    .where('operation_id', '=', operationId)
    .executeTakeFirstOrThrow();
  return size ?? 0;
}

/**
 * Deletes outputs of operations that began before `time` (Unix milliseconds), oldest first, until their total reaches `bytes`.
 * Deletes at most `OUTPUTS_AT_ONCE`. Returns the number of deleted outputs.
 */
export async function deleteOutputsBefore(db: Queryable, time: number, bytes: number): Promise<number> {
  const old = await db
    .selectFrom('operation_outputs')
    .select(['operation_id', 'position', 'size'])
    // Operation IDs are ULIDs, so they sort by time.
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
