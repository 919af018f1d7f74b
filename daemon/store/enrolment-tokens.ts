/** Enrolment tokens by their ID; what is stored of the secret is a hash. `tags_json` is for the caller to parse. */
import type { Queryable } from './queryable.js';
import type { NewRow, Row } from './schema.js';

export type EnrolmentTokenRow = Row<'enrolment_tokens'>;

export async function insertEnrolmentToken(db: Queryable, token: NewRow<'enrolment_tokens'>): Promise<void> {
  await db.insertInto('enrolment_tokens').values(token).execute();
}

/** Those that were not revoked, the oldest first. */
export async function listEnrolmentTokens(db: Queryable): Promise<readonly EnrolmentTokenRow[]> {
  const query = db.selectFrom('enrolment_tokens').selectAll().where('revoked_at', 'is', null);
  return query.orderBy('token_id').execute();
}

export async function findEnrolmentToken(db: Queryable, tokenId: string): Promise<EnrolmentTokenRow | null> {
  const query = db.selectFrom('enrolment_tokens').selectAll().where('token_id', '=', tokenId);
  return (await query.executeTakeFirst()) ?? null;
}

/** Takes one of the uses that are left; false, and nothing changes, when there is none. */
export async function takeTokenUse(db: Queryable, tokenId: string, now: number): Promise<boolean> {
  const result = await db
    .updateTable('enrolment_tokens')
    .set((change) => ({ uses_left: change('uses_left', '-', 1), last_used_at: now }))
    .where('token_id', '=', tokenId)
    .where('uses_left', '>', 0)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** False when there is no such token, or it was revoked before. */
export async function revokeEnrolmentToken(db: Queryable, tokenId: string, now: number): Promise<boolean> {
  const result = await db
    .updateTable('enrolment_tokens')
    .set({ revoked_at: now })
    .where('token_id', '=', tokenId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/**
 * Revokes the tokens with uses left, of one maker if given; returns how many there were. Expired ones too: they would be good
 * again after a clock that went back.
 */
export async function revokeUnusedTokens(db: Queryable, now: number, maker?: string): Promise<number> {
  let query = db.updateTable('enrolment_tokens').set({ revoked_at: now });
  if (maker !== undefined) query = query.where('created_by', '=', maker);
  const result = await query.where('revoked_at', 'is', null).where('uses_left', '>', 0).executeTakeFirst();
  return Number(result.numUpdatedRows);
}

/** Drops tokens that had expired before that time in ms; returns how many there were. */
export async function deleteTokensExpiredBefore(db: Queryable, time: number): Promise<number> {
  const result = await db.deleteFrom('enrolment_tokens').where('expires_at', '<', time).executeTakeFirst();
  return Number(result.numDeletedRows);
}
