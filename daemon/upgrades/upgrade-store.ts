/** Rows of agents' upgrades. */
import type { Updateable } from 'kysely';
import { type Decoded, jsonColumns } from '../database/json-columns.js';
import type { Queryable, Row } from '../database/schema.js';

interface UpgradeValues {
  readonly error: { readonly code: string; readonly message: string } | null;
}

const columns = jsonColumns<UpgradeValues>({ error: true });

export type UpgradeRow = Decoded<Row<'agent_upgrades'>, UpgradeValues>;

export async function findUpgrade(db: Queryable, nodeId: string): Promise<UpgradeRow | null> {
  const row = await db.selectFrom('agent_upgrades').selectAll().where('node_id', '=', nodeId).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

/** Stores an upgrade in the place of the agent's earlier one. */
export async function putUpgrade(db: Queryable, upgrade: UpgradeRow): Promise<void> {
  await db.deleteFrom('agent_upgrades').where('node_id', '=', upgrade.node_id).execute();
  await db.insertInto('agent_upgrades').values(columns.encode(upgrade)).execute();
}

export async function updateUpgrade(
  db: Queryable,
  nodeId: string,
  change: Decoded<Updateable<Row<'agent_upgrades'>>, UpgradeValues>,
): Promise<void> {
  await db.updateTable('agent_upgrades').set(columns.encode(change)).where('node_id', '=', nodeId).execute();
}

/** Returns the upgrades in a state. */
export async function upgradesIn(db: Queryable, state: string): Promise<readonly UpgradeRow[]> {
  const rows = await db.selectFrom('agent_upgrades').selectAll().where('state', '=', state).execute();
  return rows.map((row) => columns.decode(row));
}
