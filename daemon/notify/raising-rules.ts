/** Which events raise a notification, which only once something holds, and which end what was going on. */
import type { RecordedEvent } from '../core/audit-log.js';
import type { EventType } from '../core/domain-event.js';
import type { Queryable, Row } from '../database/schema.js';
import { deleteAgentAbsence, putAgentAbsence } from './absences.js';
import { deleteReadMarks } from './notification-store.js';

/** What is to be told of an event. */
export interface Raised {
  readonly summary: string;
  /** Channels that it goes to: all, none, or all but one. */
  readonly channels: 'all' | 'none' | { readonly except: string };
}

/** Null raises nothing. Runs in the transaction of the event. */
type Rule = (tx: Queryable, event: RecordedEvent) => Promise<Raised | null>;

const asItIs: Rule = async (_tx, { summary }) => ({ summary, channels: 'all' });

export const RULES: Readonly<Partial<Record<EventType, Rule>>> = {
  'agent.pending': asItIs,
  'agent.refused': asItIs,
  'agent.duplicate_identity': asItIs,
  'agent.journal_lost': asItIs,
  'agent.connected': async (tx, { target, timestamp }) => {
    await putAgentAbsence(tx, { node_id: target.id, connected_at: timestamp, away_since: null, event_json: null });
    return null;
  },
  // Told after some time, when it has not come back: see `Absences`.
  'agent.disconnected': async (tx, event) => {
    const { target, timestamp } = event;
    const absence = { node_id: target.id, connected_at: null, away_since: timestamp };
    await putAgentAbsence(tx, { ...absence, event_json: JSON.stringify(event) });
    return null;
  },
  'agent.rejected': forgetAgent,
  'agent.removed': forgetAgent,
  'drift.detected': asItIs,
  'drift.resolved': asItIs,
  'state.apply_failed': asItIs,
  'state.apply_interrupted': asItIs,
  'operator.added': asItIs,
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
  'channel.delivery_failed': async (_tx, { summary, target, metadata }) => {
    // A channel that goes on failing is told of once; and what fails while telling that is told to nobody, else two broken
    // channels would tell of each other for ever.
    if (metadata.repeated === true) return null;
    return { summary, channels: metadata.of_delivery_failure === true ? 'none' : { except: target.id } };
  },
};

async function forgetAgent(tx: Queryable, { target }: RecordedEvent): Promise<null> {
  await deleteAgentAbsence(tx, target.id);
  return null;
}

/** Failures in a row that are told of. */
const STREAK = 5;
/** Whoever goes on trying is told of again after that time at the earliest, in milliseconds. */
const TOLD_EVERY = 3_600_000;

/** An event may stand for several failures. */
async function loginFailed(tx: Queryable, { target, metadata, timestamp }: RecordedEvent): Promise<Raised | null> {
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

async function loginSucceeded(tx: Queryable, { target, metadata, timestamp }: RecordedEvent): Promise<Raised | null> {
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

/** Logins that failed in a row, and the addresses that operators log in from. */
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

/** Notes a login; returns when the last one from there was, null when there was none. */
export async function noteLoginAddress(
  db: Queryable,
  { operator_id, address, last_login_at }: Row<'operator_addresses'>,
): Promise<number | null> {
  const before = await db
    .selectFrom('operator_addresses')
    .select('last_login_at')
    .where('operator_id', '=', operator_id)
    .where('address', '=', address)
    .executeTakeFirst();
  await db
    .insertInto('operator_addresses')
    .values({ operator_id, address, last_login_at })
    .onConflict((conflict) => conflict.columns(['operator_id', 'address']).doUpdateSet({ last_login_at }))
    .execute();
  return before?.last_login_at ?? null;
}

async function deleteLoginAddresses(db: Queryable, operatorId: string): Promise<void> {
  await db.deleteFrom('operator_addresses').where('operator_id', '=', operatorId).execute();
}

/** Forgets addresses that nobody has logged in from since a time in ms. */
export async function deleteLoginAddressesBefore(db: Queryable, time: number): Promise<void> {
  await db.deleteFrom('operator_addresses').where('last_login_at', '<', time).execute();
}
