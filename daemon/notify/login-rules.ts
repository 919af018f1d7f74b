/** When logins are told of: failures in a row, and successes from where the operator has never been. */
import type { RecordedEvent } from '../core/audit-log.js';
import type { Queryable } from '../database/schema.js';
import { deleteLoginStreak, findLoginStreak, noteLoginAddress, putLoginStreak } from './login-watch.js';
import type { Raised } from './raising-rules.js';

/** Failures in a row that are told of. */
const STREAK = 5;
/** Whoever goes on trying is told of again after that time at the earliest, in milliseconds. */
const TOLD_EVERY = 3_600_000;

/** An event may stand for several failures. */
export async function loginFailed(
  tx: Queryable,
  { target, metadata, timestamp }: RecordedEvent,
): Promise<Raised | null> {
  const before = await findLoginStreak(tx, target.id);
  const failures = (before?.failures ?? 0) + (typeof metadata.count === 'number' ? metadata.count : 1);
  const toldAt = before?.told_at ?? null;
  const isDue = failures >= STREAK && (toldAt === null || timestamp < toldAt || timestamp - toldAt >= TOLD_EVERY);
  await putLoginStreak(tx, {
    subject: target.id,
    failures: isDue ? 0 : failures,
    told_at: isDue ? timestamp : toldAt,
  });
  const from = typeof metadata.address === 'string' ? `, the last time from ${metadata.address}` : '';
  const summary = `${whoOf(target)} failed to log in ${failures} times in a row${from}`;
  return isDue ? { summary, channels: 'all' } : null;
}

export async function loginSucceeded(
  tx: Queryable,
  { target, metadata, timestamp }: RecordedEvent,
): Promise<Raised | null> {
  await deleteLoginStreak(tx, target.id);
  const { address } = metadata;
  if (typeof address !== 'string') return null;
  const known = await noteLoginAddress(tx, { operator_id: target.id, address, last_login_at: timestamp });
  return known === null
    ? { summary: `${target.name} logged in from ${address}, an address that is new for them`, channels: 'all' }
    : null;
}

/** Failures that belong to nobody are counted together. */
const whoOf = ({ name, type }: RecordedEvent['target']): string =>
  type === 'system' ? 'Clients that ask too often' : name === 'unknown' ? 'Unknown keys' : name;
