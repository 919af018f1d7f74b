/** Measurements of agents' machines. Times of reception are milliseconds. */
import type { NewRow, Queryable, Row } from '../database/schema.js';

export type MetricsRow = Row<'metrics_samples'>;

/** Rows of one statement: SQLite takes 32,766 values. */
const CHUNK = 1_000;

/** Two samples of one agent in the same millisecond are one. */
export async function insertSamples(db: Queryable, samples: readonly NewRow<'metrics_samples'>[]): Promise<void> {
  for (let at = 0; at < samples.length; at += CHUNK) {
    await db
      .insertInto('metrics_samples')
      .values(samples.slice(at, at + CHUNK))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

export interface SampleFilter {
  readonly nodeId: string;
  /** Unix milliseconds, inclusive. */
  readonly from: number;
  /** Unix milliseconds, inclusive: a sample of a later time was received while the clock was ahead. */
  readonly to: number;
  readonly limit: number;
}

/** The newest ones, oldest first. */
export async function listSamples(
  db: Queryable,
  { nodeId, from, to, limit }: SampleFilter,
): Promise<readonly MetricsRow[]> {
  const rows = await db
    .selectFrom('metrics_samples')
    .selectAll()
    .where('node_id', '=', nodeId)
    .where('received_at', '>=', from)
    .where('received_at', '<=', to)
    .orderBy('received_at', 'desc')
    .limit(limit)
    .execute();
  return rows.reverse();
}

/** The newest sample of every agent that has one, of those received up to `to`. */
export async function latestSamples(db: Queryable, to: number): Promise<readonly MetricsRow[]> {
  return db
    .selectFrom('metrics_samples as sample')
    .innerJoin('agents', 'agents.node_id', 'sample.node_id')
    .selectAll('sample')
    .where(({ eb, selectFrom }) =>
      eb(
        'sample.received_at',
        '=',
        selectFrom('metrics_samples as other')
          .select(({ fn }) => fn.max('other.received_at').as('newest'))
          .whereRef('other.node_id', '=', 'sample.node_id')
          .where('other.received_at', '<=', to),
      ),
    )
    .orderBy('sample.node_id')
    .execute();
}

/** Drops at most that many of the samples received before a time; returns how many it has dropped. */
export async function deleteSamplesBefore(db: Queryable, time: number, limit: number): Promise<number> {
  const old = db.selectFrom('metrics_samples').select('received_at').where('received_at', '<', time);
  const edge = await old
    .orderBy('received_at')
    .offset(limit - 1)
    .limit(1)
    .executeTakeFirst();
  const until = edge === undefined ? time : edge.received_at + 1;
  const result = await db.deleteFrom('metrics_samples').where('received_at', '<', until).executeTakeFirst();
  return Number(result.numDeletedRows);
}
