/** Rules that decide which events raise a notification, at once or after a condition, and which events clear state. */
import { hostNetworkOf } from '../../src/kernel/ip-network.js';
import type { RecordedEvent } from '../core/audit-log.js';
import type { EventType } from '../core/domain-event.js';
import type { Queryable, Row } from '../database/schema.js';
import { deleteAgentAbsence, noteConnected, noteDisconnected } from './absence-store.js';
import { deleteReadMarks } from './notification-store.js';

/** The notification that an event raises. */
export interface NotificationDraft {
  readonly summary: string;
  /** Receiving channels: all, none, or all but one. */
  readonly channels: 'all' | 'none' | { readonly except: string };
}

/** Returns the notification to raise, or null. Runs in the transaction of the event. */
type Rule = (tx: Queryable, event: RecordedEvent) => Promise<NotificationDraft | null>;

const asItIs: Rule = async (_tx, { summary }) => ({ summary, channels: 'all' });

export const NOTIFICATION_RULES: Readonly<Partial<Record<EventType, Rule>>> = {
  'agent.pending': asItIs,
  'agent.refused': asItIs,
  'agent.duplicate_identity': asItIs,
  'agent.journal_lost': asItIs,
  'agent.upgrade_failed': asItIs,
  'agent.connected': async (tx, { target, timestamp }) => {
    await noteConnected(tx, target.id, timestamp);
    return null;
  },
  // Raised later, if the agent has not returned by then: see `OfflineWatch`.
  'agent.disconnected': async (tx, event) => {
    await noteDisconnected(tx, event);
    return null;
  },
  'agent.returned': asItIs,
  'agent.rejected': forgetAgent,
  'agent.removed': forgetAgent,
  'agent.removals_held': asItIs,
  'drift.detected': asItIs,
  'drift.resolved': asItIs,
  'enforcement.stopped': asItIs,
  'state.apply_failed': asItIs,
  'state.apply_interrupted': asItIs,
  'rollout.halted': asItIs,
  'rollout.failed': asItIs,
  'rollout.reverted': asItIs,
  'state.apply_rolled_back': asItIs,
  'operator.added': asItIs,
  'operator.rights_changed': asItIs,
  'operator.expiring': asItIs,
  'operator.expired': asItIs,
  'operator.removed': async (tx, event) => {
    await deleteReadMarks(tx, event.target.id);
    await deleteLoginAddresses(tx, event.target.id);
    return asItIs(tx, event);
  },
  'operator.login': loginSucceeded,
  'operator.login_failed': loginFailed,
  'secret.expired': asItIs,
  'orchestrator.restored': asItIs,
  'orchestrator.store_damaged': asItIs,
  'audit.events_lost': asItIs,
  'orchestrator.clock_jumped': asItIs,
  'orchestrator.certificate_expiring': asItIs,
  'orchestrator.certificate_expired': asItIs,
  'channel.delivery_failed': async (_tx, { summary, target, metadata }) => {
    // A channel that keeps failing raises one notification. A failure to deliver that notification goes to no channel:
    // otherwise two broken channels would report each other for ever.
    if (metadata.repeated === true) return null;
    return { summary, channels: metadata.of_delivery_failure === true ? 'none' : { except: target.id } };
  },
};

async function forgetAgent(tx: Queryable, { target }: RecordedEvent): Promise<null> {
  await deleteAgentAbsence(tx, target.id);
  return null;
}

/** Number of consecutive failed logins that raises a notification. */
const STREAK = 5;
/** Minimum milliseconds between two notifications about the same subject's failed logins. */
const TOLD_EVERY = 3_600_000;

/** Counts the failures of an event, which may stand for several. Returns a notification when the streak is due. */
async function loginFailed(
  tx: Queryable,
  { target, metadata, timestamp }: RecordedEvent,
): Promise<NotificationDraft | null> {
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

async function loginSucceeded(
  tx: Queryable,
  { target, metadata, timestamp }: RecordedEvent,
): Promise<NotificationDraft | null> {
  await deleteLoginStreak(tx, target.id);
  const { address } = metadata;
  if (typeof address !== 'string') return null;
  const isKnown = await noteLoginAddress(tx, { operator_id: target.id, address, last_login_at: timestamp });
  return isKnown
    ? null
    : { summary: `${target.name} logged in from ${address}, an address that is new for them`, channels: 'all' };
}

/** Returns the subject of a failure. Rate-limited clients are counted together, and so are unknown keys. */
const whoOf = ({ name, type }: RecordedEvent['target']): string =>
  type === 'system' ? 'Clients that ask too often' : name === 'unknown' ? 'Unknown keys' : name;

/** Consecutive failed logins of one subject. */
type LoginStreakRow = Row<'login_streaks'>;

async function findLoginStreak(db: Queryable, subject: string): Promise<LoginStreakRow | null> {
  return (await db.selectFrom('login_streaks').selectAll().where('subject', '=', subject).executeTakeFirst()) ?? null;
}

export async function putLoginStreak(db: Queryable, { subject, failures, told_at }: LoginStreakRow): Promise<void> {
  await db
    .insertInto('login_streaks')
    .values({ subject, failures, told_at })
    .onConflict((conflict) => conflict.column('subject').doUpdateSet({ failures, told_at }))
    .execute();
}

async function deleteLoginStreak(db: Queryable, subject: string): Promise<void> {
  await db.deleteFrom('login_streaks').where('subject', '=', subject).execute();
}

/**
 * Records a login. Returns true when the operator has logged in from this host before. The addresses of one IPv6 network
 * (/64) count as one host, because a host takes a new one each day.
 */
export async function noteLoginAddress(
  db: Queryable,
  { operator_id, address, last_login_at }: Row<'operator_addresses'>,
): Promise<boolean> {
  const rows = await db
    .selectFrom('operator_addresses')
    .select('address')
    .where('operator_id', '=', operator_id)
    .execute();
  const known = rows.find((row) => hostNetworkOf(row.address) === hostNetworkOf(address));
  await db
    .insertInto('operator_addresses')
    .values({ operator_id, address: known?.address ?? address, last_login_at })
    .onConflict((conflict) => conflict.columns(['operator_id', 'address']).doUpdateSet({ last_login_at }))
    .execute();
  return known !== undefined;
}

async function deleteLoginAddresses(db: Queryable, operatorId: string): Promise<void> {
  await db.deleteFrom('operator_addresses').where('operator_id', '=', operatorId).execute();
}

/** Deletes addresses whose last login was before `time` (Unix milliseconds). */
export async function deleteLoginAddressesBefore(db: Queryable, time: number): Promise<void> {
  await db.deleteFrom('operator_addresses').where('last_login_at', '<', time).execute();
}
