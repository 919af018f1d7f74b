/** Rows of the tags that operators set on agents. */
import { chunks } from '../database/batches.js';
import { preparedQuery } from '../database/prepared-query.js';
import type { Queryable } from '../database/schema.js';

export type Tags = Readonly<Record<string, string>>;

/** Returns the tags of one agent, sorted by key. */
export async function tagsOf(db: Queryable, nodeId: string): Promise<Tags> {
  const rows = await tagsOfAgent(db, nodeId);
  return Object.fromEntries(rows.map(({ key, value }) => [key, value]));
}

const tagsOfAgent = preparedQuery((db, nodeId: string) =>
  db.selectFrom('agent_tags').select(['key', 'value']).where('node_id', '=', nodeId).orderBy('key'),
);

/** Returns the tags of all agents by node ID; agents without tags are absent. */
export async function tagsByAgent(db: Queryable): Promise<ReadonlyMap<string, Tags>> {
  const tags = new Map<string, Record<string, string>>();
  for (const row of await db.selectFrom('agent_tags').selectAll().orderBy('node_id').orderBy('key').execute()) {
    const own = tags.get(row.node_id) ?? Object.create(null);
    tags.set(row.node_id, own);
    own[row.key] = row.value;
  }
  return tags;
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
