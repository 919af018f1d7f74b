/** Rows of the tags that operators set on agents. */
import { chunks } from '../database/batches.js';
import type { Queryable, Row } from '../database/schema.js';

export type Tags = Readonly<Record<string, string>>;

/** Returns the tags of one agent, sorted by key. */
export async function tagsOf(db: Queryable, nodeId: string): Promise<Tags> {
  const rows = await db
    .selectFrom('agent_tags')
    .select(['key', 'value'])
    .where('node_id', '=', nodeId)
    .orderBy('key')
    .execute();
  return Object.fromEntries(rows.map(({ key, value }) => [key, value]));
}

/** Returns tags by node ID, of the given agents or of all; agents without tags are absent. */
export async function tagsByAgent(db: Queryable, nodeIds?: readonly string[]): Promise<ReadonlyMap<string, Tags>> {
  const tags = new Map<string, Record<string, string>>();
  for (const row of await tagRows(db, nodeIds)) {
    const own = tags.get(row.node_id) ?? Object.create(null);
    tags.set(row.node_id, own);
    own[row.key] = row.value;
  }
  return tags;
}

async function tagRows(db: Queryable, nodeIds?: readonly string[]): Promise<readonly Row<'agent_tags'>[]> {
  const query = db.selectFrom('agent_tags').selectAll().orderBy('node_id').orderBy('key');
  if (nodeIds === undefined) return query.execute();
  const rows: Row<'agent_tags'>[] = [];
  for (const part of chunks(nodeIds, 500)) rows.push(...(await query.where('node_id', 'in', part).execute()));
  return rows;
}

/** Adds or changes one tag. */
export async function setTag(db: Queryable, nodeId: string, key: string, value: string): Promise<void> {
  await db
    .insertInto('agent_tags')
    .values({ node_id: nodeId, key, value })
    .onConflict((conflict) => conflict.columns(['node_id', 'key']).doUpdateSet({ value }))
    .execute();
}

/** Returns false when the agent has no such tag. */
export async function removeTag(db: Queryable, nodeId: string, key: string): Promise<boolean> {
  const result = await db
    .deleteFrom('agent_tags')
    .where('node_id', '=', nodeId)
    .where('key', '=', key)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Replaces all tags of the agent. */
export async function replaceTags(db: Queryable, nodeId: string, tags: Tags): Promise<void> {
  await db.deleteFrom('agent_tags').where('node_id', '=', nodeId).execute();
  const rows = Object.entries(tags).map(([key, value]) => ({ node_id: nodeId, key, value }));
  for (const part of chunks(rows, 500)) await db.insertInto('agent_tags').values(part).execute();
}

/** Returns every key with its values, both sorted. */
export async function distinctTags(db: Queryable): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await db
    .selectFrom('agent_tags')
    .select(['key', 'value'])
    .distinct()
    .orderBy('key')
    .orderBy('value')
    .execute();
  const values = new Map<string, string[]>();
  for (const { key, value } of rows) {
    const known = values.get(key);
    if (known) known.push(value);
    else values.set(key, [value]);
  }
  return values;
}
