/** The believed state of agents. Rows as they are stored: `body_json` and `taint_json` are for the caller to parse. */
import { setImmediate } from 'node:timers/promises';
import { CATALOGUE } from '../../src/resources/catalogue.js';
import type { DesiredResource, Origin, Removal } from '../../src/resources/desired.js';
import { MODULE_FAMILIES } from '../../src/resources/kind.js';
import { chunks } from '../database/batches.js';
import type { NewRow, Queryable, Row } from '../database/schema.js';

export type AppliedResourceRow = Row<'applied_resources'>;

/** What makes a row unique on its agent. */
export type AppliedResourceKey = Pick<AppliedResourceRow, 'family' | 'identity_key'>;

/** Rows read at a time; 500 take a few milliseconds. */
const PAGE = 500;

/**
 * Returns the believed state in the order of application. Reads it in pages, between which others use the connection: the
 * caller makes sure that no apply of the agent ends meanwhile, and does not call it within a transaction.
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
        })),
      )
      .execute();
  }
}

/** Notes that an apply found every row of the agent as it is. */
export async function confirmAppliedResources(
  db: Queryable,
  nodeId: string,
  apply: Pick<AppliedResourceRow, 'operation_id' | 'applied_at'>,
): Promise<void> {
  await db.updateTable('applied_resources').set(apply).where('node_id', '=', nodeId).execute();
}

/** Rows that are not there are no mistake. */
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

export async function deleteAllAppliedResources(db: Queryable, nodeId: string): Promise<void> {
  await db.deleteFrom('applied_resources').where('node_id', '=', nodeId).execute();
}

/** Makes these the whole believed state of the agent. */
export async function replaceAppliedResources(
  db: Queryable,
  nodeId: string,
  rows: readonly NewRow<'applied_resources'>[],
): Promise<void> {
  await deleteAllAppliedResources(db, nodeId);
  for (const part of chunks(rows, 200)) await db.insertInto('applied_resources').values(part).execute();
}

export async function countAppliedResources(db: Queryable, nodeId: string): Promise<number> {
  const { count } = await db
    .selectFrom('applied_resources')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('node_id', '=', nodeId)
    .executeTakeFirstOrThrow();
  return count;
}

/** Rows of the believed state as the resources and removals that are sent to agents. */
export const originOf = ({ origin }: AppliedResourceRow): Origin => (origin === 'created' ? 'created' : 'adopted');

/** As it was applied, with masks in the place of secrets. */
export function removalOf(row: AppliedResourceRow): Removal {
  const { module, kind, identity, id, name } = row;
  return { module, kind, identity, id, name, ...bodyOf(row), origin: originOf(row) };
}

/** What a drift check looks at. Order does not matter to one that only looks, so nothing waits for anything. */
export function appliedResource(row: AppliedResourceRow): DesiredResource {
  const { module, kind, identity, id, name } = row;
  return { module, kind, identity, id, name, ...bodyOf(row), after: [] };
}

function bodyOf({ body_json, taint_json }: AppliedResourceRow): Pick<DesiredResource, 'body' | 'taint'> {
  return { body: JSON.parse(body_json), ...(taint_json === null ? {} : { taint: JSON.parse(taint_json) }) };
}

/** What makes a resource the same thing on a machine: its family and its identity in it. */
interface ResourceKey {
  readonly family: string;
  /** Where identities belong to one module, its name stands in front. */
  readonly identity_key: string;
}

interface ResourceAddress {
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
}

export function resourceKey({ module, kind, identity }: ResourceAddress): ResourceKey {
  const family = CATALOGUE.get(kind)?.family;
  if (family === undefined) return { family: kind, identity_key: identity };
  return { family, identity_key: MODULE_FAMILIES.has(family) ? `${module}/${identity}` : identity };
}

/** The key as one string, for maps. */
export const keyText = ({ family, identity_key }: ResourceKey): string => `${family}\0${identity_key}`;
