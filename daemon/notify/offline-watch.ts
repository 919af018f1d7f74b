/**
 * Raises notifications about agents that disconnected and did not return in time. Absences are in the store, so they
 * survive a restart. A killed orchestrator records no disconnects: agents that were connected then and stay away get
 * their event after the next start.
 */
import { messageOf } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import type { RecordedEvent } from '../core/audit-log.js';
import type { Core } from '../core/core.js';
import { type DomainEvent, SYSTEM } from '../core/domain-event.js';
import { type Decoded, jsonColumns } from '../database/json-columns.js';
import { preparedQuery } from '../database/prepared-query.js';
import type { Queryable, Row } from '../database/schema.js';
import { findAgent } from '../fleet/agent-store.js';
import type { NotificationWriter } from './notification-writer.js';

interface OfflineWatchOptions extends Pick<Core, 'clock' | 'db' | 'logger' | 'uow'> {
  readonly writer: NotificationWriter;
}

/** Milliseconds that an agent may be away before a notification is raised. */
const AWAY_MS = 60_000;
/** Milliseconds that agents get to reconnect after a start: slightly more than their longest reconnect delay. */
const RETURN_MS = 75_000;
const TICK_MS = 1_000;
/** Maximum agents per transaction. */
const AT_ONCE = 100;

export class OfflineWatch implements Service {
  readonly name = 'watch of offline agents';
  private readonly options: OfflineWatchOptions;
  private timer: NodeJS.Timeout | undefined;
  private checking: Promise<void> | null = null;
  /** Time of the start in milliseconds, by the wall clock and by the monotonic clock. */
  private started = { wall: 0, steady: 0 };

  constructor(options: OfflineWatchOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    const { clock } = this.options;
    this.started = { wall: clock.now(), steady: clock.monotonic() };
    this.timer = setInterval(() => {
      this.checking ??= this.check().finally(() => {
        this.checking = null;
      });
    }, TICK_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.checking;
  }

  /** True after a check that failed. */
  private isFailing = false;

  /** Raises notifications for agents that are away too long, and records lost agents. Never rejects. */
  async check(): Promise<void> {
    const { db, clock, logger } = this.options;
    const { wall, steady } = this.started;
    const isSettled = clock.monotonic() - steady >= RETURN_MS;
    try {
      const now = clock.now();
      const away = await agentsAwaySince(db, isSettled ? 0 : wall, now - AWAY_MS, now);
      if (away.length > 0) await this.notifyAbsent(away);
      const lost = isSettled ? await agentsConnectedBefore(db, wall, now) : [];
      if (lost.length > 0) await this.recordLost(lost);
      this.isFailing = false;
    } catch (error) {
      // A check each second says once that the store is away.
      logger[this.isFailing ? 'debug' : 'error'](
        'notifications about absent agents could not be stored; the next check retries',
        { reason: messageOf(error) },
      );
      this.isFailing = true;
    }
  }

  private notifyAbsent(rows: readonly AgentAbsence[]): Promise<void> {
    const { uow, writer } = this.options;
    return uow.write(async (tx) => {
      for (const { node_id: nodeId, away_since: since } of rows) {
        const row = await findAgentAbsence(tx, nodeId);
        if (row === null || row.away_since !== since || row.event === null) continue;
        await deleteAgentAbsence(tx, nodeId);
        const name = await nameOfApproved(tx, nodeId);
        if (name === null) continue;
        const summary = `Agent ${name} has been gone for more than ${AWAY_MS / 1000} seconds`;
        await writer.raise(tx, row.event, { summary, channels: 'all' });
      }
    });
  }

  private recordLost(rows: readonly AgentAbsence[]): Promise<void> {
    const { uow } = this.options;
    return uow.write(async (tx, emit) => {
      for (const { node_id: nodeId, connected_at: since } of rows) {
        const row = await findAgentAbsence(tx, nodeId);
        if (row === null || row.connected_at !== since) continue;
        await deleteAgentAbsence(tx, nodeId);
        const name = await nameOfApproved(tx, nodeId);
        if (name !== null) emit(lostAgent(nodeId, name));
      }
    });
  }
}

/** Returns the name of an approved agent; null for one that was rejected or removed meanwhile. */
async function nameOfApproved(tx: Queryable, nodeId: string): Promise<string | null> {
  const agent = await findAgent(tx, nodeId);
  return agent?.status === 'approved' ? (agent.name ?? nodeId) : null;
}

const lostAgent = (nodeId: string, name: string): DomainEvent => ({
  type: 'agent.disconnected',
  actor: SYSTEM,
  target: { id: nodeId, name, type: 'agent' },
  summary: `Agent ${name} was connected before the orchestrator was started again, and has not come back`,
  metadata: {},
});

/** State of one agent: connected, or away without a notification raised yet. */
type AgentAbsenceRow = Decoded<Row<'agent_absences'>, AbsenceValues>;

/** A state without its event. */
type AgentAbsence = Omit<AgentAbsenceRow, 'event'>;

const TIMES = ['node_id', 'connected_at', 'away_since'] as const satisfies readonly (keyof AgentAbsence)[];

interface AbsenceValues {
  /** Event of the disconnect; null while the agent is connected. */
  readonly event: RecordedEvent | null;
}

const columns = jsonColumns<AbsenceValues>({ event: true });

export async function putAgentAbsence(db: Queryable, absence: AgentAbsenceRow): Promise<void> {
  const { node_id, connected_at, away_since, event_json } = columns.encode(absence);
  await putRow(db, node_id, connected_at, away_since, event_json);
}

const putRow = preparedQuery(
  (db, node_id: string, connected_at: number | null, away_since: number | null, event_json: string | null) =>
    db
      .insertInto('agent_absences')
      .values({ node_id, connected_at, away_since, event_json })
      .onConflict((conflict) => conflict.column('node_id').doUpdateSet({ connected_at, away_since, event_json })),
);

async function findAgentAbsence(db: Queryable, nodeId: string): Promise<AgentAbsenceRow | null> {
  const row = await db.selectFrom('agent_absences').selectAll().where('node_id', '=', nodeId).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

export async function deleteAgentAbsence(db: Queryable, nodeId: string): Promise<void> {
  await db.deleteFrom('agent_absences').where('node_id', '=', nodeId).execute();
}

/**
 * Returns agents that disconnected between `from` and `to`, or at a time ahead of `now` because the clock was wrong,
 * longest absence first. Times are Unix milliseconds.
 */
const agentsAwaySince = preparedQuery((db, from: number, to: number, now: number) =>
  db
    .selectFrom('agent_absences')
    .select(TIMES)
    .where('away_since', '>=', from)
    .where((is) => is.or([is('away_since', '<=', to), is('away_since', '>', now)]))
    .orderBy('away_since')
    .limit(AT_ONCE),
);

/** Returns agents recorded as connected before `time`, or at a time ahead of `now`. Times are Unix milliseconds. */
const agentsConnectedBefore = preparedQuery((db, time: number, now: number) =>
  db
    .selectFrom('agent_absences')
    .select(TIMES)
    .where((is) => is.or([is('connected_at', '<', time), is('connected_at', '>', now)]))
    .orderBy('node_id')
    .limit(AT_ONCE),
);
