/**
 * Stores the believed state of agents. Bodies stay text until `appliedResource` or `removalOf` decodes one, because most
 * applies only compare them.
 */

import { setImmediate } from 'node:timers/promises';
import type { DesiredResource, Origin, Removal } from '../../../src/resources/desired.js';
import type { Listener } from '../../../src/resources/listeners.js';
import { chunks } from '../../database/batches.js';
import type { NewRow, Queryable, Row } from '../../database/schema.js';
import { storedJson } from '../../database/stored-json.js';
import type { SecretHashes } from './secret-hashes.js';

export type AppliedResourceRow = Row<'applied_resources'>;

/** The columns that identify a row on its agent. */
export type AppliedResourceKey = Pick<AppliedResourceRow, 'family' | 'identity_key'>;

/** Rows read at a time; 500 take a few milliseconds. */
const PAGE = 500;

/**
 * Returns the believed state in the order of application. Reads it in pages and yields between them, so that other work can use
 * the connection. The caller ensures that no apply of the agent ends meanwhile, and must not call it in a transaction.
 */
export async function listAppliedResources(db: Queryable, nodeId: string): Promise<readonly AppliedResourceRow[]> {
  const rows: AppliedResourceRow[] = [];
  for (;;) {
    const last = rows.at(-1);
    let query = db.selectFrom('applied_resources').selectAll().where('node_id', '=', nodeId);
    if (last !== undefined) {
      const { family, identity_key } = last;
      query = query.where((is) => is(is.refTuple('family', 'identity_key'), '>', is.tuple(family, identity_key)));
    }
    const page = await query.orderBy('family').orderBy('identity_key').limit(PAGE).execute();
    rows.push(...page);
    if (page.length < PAGE) return rows.sort((a, b) => a.position - b.position);
    await setImmediate();
  }
}

/** Adds rows, or replaces those with the same node, family and identity key. */
export async function putAppliedResources(db: Queryable, rows: readonly NewRow<'applied_resources'>[]): Promise<void> {
  for (const part of chunks(rows, 200)) {
    await db
      .insertInto('applied_resources')
      .values(part)
      .onConflict((conflict) =>
        conflict.columns(['node_id', 'family', 'identity_key']).doUpdateSet((from) => ({
          module: from.ref('excluded.module'),
          kind: from.ref('excluded.kind'),
          identity: from.ref('excluded.identity'),
          id: from.ref('excluded.id'),
          name: from.ref('excluded.name'),
          body_json: from.ref('excluded.body_json'),
          taint_json: from.ref('excluded.taint_json'),
          origin: from.ref('excluded.origin'),
          operation_id: from.ref('excluded.operation_id'),
          applied_at: from.ref('excluded.applied_at'),
          position: from.ref('excluded.position'),
          ad_hoc: from.ref('excluded.ad_hoc'),
          secrets_json: from.ref('excluded.secrets_json'),
          listeners_json: from.ref('excluded.listeners_json'),
        })),
      )
      .execute();
  }
}

/** Notes in the rows of an agent that a later apply has confirmed them: while it confirms all, it writes none. */
export async function confirmAppliedResources(
  db: Queryable,
  nodeId: string,
  { operation_id, applied_at }: Pick<AppliedResourceRow, 'operation_id' | 'applied_at'>,
): Promise<void> {
  await db
    .updateTable('applied_resources')
    .set({ operation_id, applied_at })
    .where('node_id', '=', nodeId)
    .where('operation_id', '<', operation_id)
    .execute();
}

/** Deletes the rows with these keys; ignores keys without a row. */
export async function deleteAppliedResources(
  db: Queryable,
  nodeId: string,
  keys: readonly AppliedResourceKey[],
): Promise<void> {
  for (const part of chunks(keys, 200)) {
    await db
      .deleteFrom('applied_resources')
      .where('node_id', '=', nodeId)
      .where((is) =>
        is.or(
          part.map(({ family, identity_key }) =>
            is.and([is('family', '=', family), is('identity_key', '=', identity_key)]),
          ),
        ),
      )
      .execute();
  }
}

/** Returns the origin of a row; every value other than `created` counts as adopted. */
export const originOf = ({ origin }: AppliedResourceRow): Origin => (origin === 'created' ? 'created' : 'adopted');

/** Returns the removal of a row, with masks in the place of secrets. */
export function removalOf(row: AppliedResourceRow): Removal {
  const { module, kind, identity, id, name } = row;
  return { module, kind, identity, id, name, ...bodyOf(row), origin: originOf(row) };
}

/** Returns the resources that react when that of the row goes. */
export const listenersOfRow = ({ listeners_json }: AppliedResourceRow): readonly Listener[] =>
  storedJson(listeners_json ?? '[]');

/** Returns the resource for a drift check. `after` is empty because order does not matter to a read-only check. */
export function appliedResource(row: AppliedResourceRow): DesiredResource {
  const { module, kind, identity, id, name } = row;
  return { module, kind, identity, id, name, ...bodyOf(row), after: [] };
}

/** Returns true when a secret is in the resource. */
export const hasSecrets = ({ taint_json }: AppliedResourceRow): boolean => taint_json !== null;

/** Returns the hashes of the secrets that the resource was applied with. */
export const secretHashesOf = ({ secrets_json }: AppliedResourceRow): SecretHashes => storedJson(secrets_json ?? '{}');

/**
 * Returns the columns of a resource with masks in the place of secrets.
 * @param secrets hashes of its secrets; null when it holds none
 */
export const resourceColumns = (
  { body, taint }: Pick<DesiredResource, 'body' | 'taint'>,
  secrets: SecretHashes | null,
): Pick<AppliedResourceRow, 'body_json' | 'taint_json' | 'secrets_json'> => ({
  body_json: JSON.stringify(body),
  taint_json: taint === undefined ? null : JSON.stringify(taint),
  secrets_json: secrets === null ? null : JSON.stringify(secrets),
});

const COMPARED = [
  'module',
  'kind',
  'identity',
  'id',
  'name',
  'body_json',
  'taint_json',
  'origin',
  'position',
  'ad_hoc',
  'secrets_json',
  'listeners_json',
] as const satisfies readonly (keyof AppliedResourceRow)[];

/** Returns true when two rows of one resource differ at most in their operation and its time. */
export const isSameResource = (one: NewRow<'applied_resources'>, other: AppliedResourceRow): boolean =>
  COMPARED.every((column) => (one[column] ?? null) === other[column]);

/** Returns a text that equals that of another row or resource when nothing about the resource itself differs. */
export function comparableRow(row: AppliedResourceRow): string {
  const { module, kind, identity, id, name, body_json, taint_json, secrets_json } = row;
  return JSON.stringify([module, kind, identity, id, name, body_json, taint_json, secrets_json]);
}

/** Returns the text that `comparableRow` returns for the row of a resource. @param secrets as for `resourceColumns` */
export function comparableResource(resource: DesiredResource, secrets: SecretHashes | null): string {
  const { module, kind, identity, id, name } = resource;
  const { body_json, taint_json, secrets_json } = resourceColumns(resource, secrets);
  return JSON.stringify([module, kind, identity, id ?? null, name ?? null, body_json, taint_json, secrets_json]);
}

function bodyOf({ body_json, taint_json }: AppliedResourceRow): Pick<DesiredResource, 'body' | 'taint'> {
  return { body: storedJson(body_json), ...(taint_json === null ? {} : { taint: storedJson(taint_json) }) };
}
