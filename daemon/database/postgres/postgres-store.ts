/**
 * A store on PostgreSQL: begins a period, and another one after each loss of the server. A lost connection is not fatal: until the
 * next period, statements are refused with `store_unavailable`.
 *
 * The answer of a commit can be lost with the connection. The session that held the lock of the store has ended when another one
 * gets the lock, so the commit is then either in the store or never will be. It is looked up before its caller is answered.
 */
import type { Kysely, Transaction } from 'kysely';
import type { ClientConfig } from 'pg';
import { Fault, messageOf } from '../../../src/kernel/fault.js';
import type { Logger } from '../../../src/kernel/logger.js';
import type { Database, Queryable } from '../schema.js';
import type { StoreDriver, TransactOptions } from '../store-driver.js';
import type { PgModule } from './load-pg.js';
import type { LockHolder } from './lock-holder.js';
import { postgresDatabase, type RunStatement, runCompiled } from './postgres-dialect.js';
import { ConnectionLost, isConnectionError, postgresFault, unreachable } from './postgres-error.js';
import { PostgresPeriod } from './postgres-period.js';
import { within } from './postgres-session.js';

export interface PostgresStoreOptions {
  readonly pg: PgModule;
  /** Returns the configuration of a connection to each server, in the order in which to try them. */
  readonly servers: () => readonly ClientConfig[];
  readonly readers: number;
  /** Name of the store for messages. */
  readonly place: string;
  /** Unique name of this process, which its sessions bear on the server. */
  readonly processName: string;
  readonly logger: Logger;
  /** Called once when the store holds another state than this process knows, so that only a restart helps. */
  readonly onFatal: (error: unknown) => void;
}

/** Milliseconds for which statements wait for a server that was lost just now. */
const GRACE_MS = 2_000;
const RETRY_MS = 250;
/** Milliseconds to wait at the start for the session of an orchestrator that has just ended. */
const LOCK_MS = 20_000;
/** Milliseconds for a statement of a migration or of a load, which may go through a whole table. */
const LONG_MS = 3_600_000;

/** Key in `meta`: name of the process that wrote last. Another name after a loss means that another orchestrator took over. */
export const WRITER_KEY = 'writer';
/** Key in `meta`: number of the last transaction without an audit event. */
export const BATCH_KEY = 'last_batch';

/** Trace of a transaction that shows later whether it was committed. */
type Mark = { readonly eventId: string } | { readonly batch: string };

export class PostgresStore implements StoreDriver {
  readonly kind = 'postgres';
  readonly db: Kysely<Database>;
  private readonly options: PostgresStoreOptions;
  private readonly closing = new AbortController();
  private period: PostgresPeriod | null = null;
  /** Resolves with the next period. */
  private coming: Promise<PostgresPeriod> | null = null;
  private lostAt = 0;
  private turn: Promise<unknown> = Promise.resolve();
  private batches = 0;
  /** Last audit event that this process committed; null before the first. */
  private lastEventId: string | null = null;
  /** The commit whose answer was lost, until it is looked up. */
  private unsettled: { readonly mark: Mark; readonly end: Promise<void> } | null = null;

  private constructor(options: PostgresStoreOptions) {
    this.options = options;
    this.db = postgresDatabase(this, {
      begin: 'begin isolation level repeatable read',
      acquire: () => this.acquireReader(),
      commit: async (run) => void (await run('commit', [])),
    });
  }

  /**
   * Connects, and locks the store. Throws `store_unavailable` when no server accepts writes, `data_dir_locked` while another
   * orchestrator holds the store.
   */
  static async open(options: PostgresStoreOptions): Promise<PostgresStore> {
    const store = new PostgresStore(options);
    const period = await store.beginPeriod();
    try {
      await store.lockAtStart(period);
    } catch (error) {
      period.end(error);
      throw error;
    }
    store.enter(period);
    return store;
  }

  /** Round-trip time to the server in milliseconds; null while it does not answer. */
  get latencyMs(): number | null {
    return this.period === null || this.period.ended.aborted ? null : this.period.latencyMs;
  }

  async run<R>(db: Queryable, sql: string, parameters: readonly unknown[]): Promise<readonly R[]> {
    return runCompiled<R>(db, sql, parameters);
  }

  async transact<T>(
    work: (tx: Transaction<Database>) => Promise<T>,
    { lastEventIdOf, onDoubt }: TransactOptions<T>,
  ): Promise<T> {
    await this.untilSettled();
    return this.inTurn(async () => {
      const period = await this.currentPeriod();
      let done: { readonly result: T; readonly mark: Mark } | null = null;
      try {
        await this.writerOf(period)
          .transaction()
          .execute(async (tx) => {
            const result = await work(tx);
            const eventId = lastEventIdOf(result);
            done = { result, mark: eventId === null ? await this.markBatch(tx) : { eventId } };
          });
      } catch (error) {
        if (!(error instanceof CommitUnknown) || done === null) throw this.faultOf(error);
        const { mark } = done as { readonly mark: Mark };
        const settled = this.settle(mark, error.cause);
        onDoubt();
        await settled;
      }
      const { result, mark } = done as unknown as { readonly result: T; readonly mark: Mark };
      if ('eventId' in mark) this.lastEventId = mark.eventId;
      return result;
    });
  }

  /** Runs `work` in a transaction of the writer before the store is in use, as migrations do. */
  async exclusively<T>(work: (tx: Transaction<Database>) => Promise<T>): Promise<T> {
    const period = await this.currentPeriod();
    try {
      return await this.writerOf(period, LONG_MS).transaction().execute(work);
    } catch (error) {
      if (!(error instanceof CommitUnknown)) throw this.faultOf(error);
      throw new Fault(
        'store_unavailable',
        `${this.options.place} has not answered whether it has committed: ${messageOf(error.cause)}`,
        { hint: 'when the database answers again, repeat the command: it checks what is stored', cause: error.cause },
      );
    }
  }

  /** Lends a session that reads, for work of several statements. Throws `store_unavailable`. */
  async withReader<T>(work: (run: RunStatement) => Promise<T>): Promise<T> {
    const period = await this.currentPeriod();
    return period.withReader((query) =>
      work((text, values) =>
        query(text, values).catch((error) => {
          throw this.faultOf(error);
        }),
      ),
    );
  }

  /** Notes that this process writes to the store from now on. */
  async claim(): Promise<void> {
    await this.exclusively(async (tx) => {
      await tx
        .insertInto('meta')
        .values({ key: WRITER_KEY, value: this.options.processName })
        .onConflict((conflict) => conflict.column('key').doUpdateSet({ value: this.options.processName }))
        .execute();
    });
  }

  /** Ends the store after the transaction in flight. A commit whose answer is still unknown is reported as such. */
  async close(): Promise<void> {
    this.closing.abort(new Fault('shutting_down', 'the store is closed'));
    await this.turn.catch(() => undefined);
    await this.period?.close();
    this.period = null;
  }

  private async acquireReader(): Promise<{ readonly run: RunStatement; readonly release: () => void }> {
    const period = await this.currentPeriod();
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    return new Promise((resolve, reject) => {
      period
        .withReader(async (query) => {
          const run: RunStatement = (text, values) =>
            query(text, values).catch((error) => {
              throw this.faultOf(error);
            });
          resolve({ run, release });
          await released;
        })
        .catch((error) => reject(this.faultOf(error)));
    });
  }

  private writerOf(period: PostgresPeriod, timeout?: number): Kysely<Database> {
    const { writer } = period;
    const run: RunStatement = (text, values) =>
      writer.query(text, values, timeout).catch((error) => {
        // Within the transaction the caller sees a fault; a server that is gone ends the period.
        throw this.faultOf(error);
      });
    return postgresDatabase(this, {
      begin: 'begin',
      acquire: async () => ({ run, release: () => undefined }),
      commit: async () => {
        try {
          await writer.commit();
        } catch (error) {
          throw isConnectionError(error) ? new CommitUnknown(error) : error;
        }
      },
    });
  }

  private async markBatch(tx: Transaction<Database>): Promise<Mark> {
    this.batches += 1;
    const batch = `${this.options.processName} ${this.batches}`;
    await tx
      .insertInto('meta')
      .values({ key: BATCH_KEY, value: batch })
      .onConflict((conflict) => conflict.column('key').doUpdateSet({ value: batch }))
      .execute();
    return { batch };
  }

  /** Waits for the server, and throws `store_unavailable` unless it has the transaction. */
  private async settle(mark: Mark, cause: unknown): Promise<void> {
    const { logger, place } = this.options;
    logger.warn('the answer of a commit was lost, it is looked up when the database is back', { store: place });
    let end: () => void = () => undefined;
    this.unsettled = {
      mark,
      end: new Promise<void>((resolve) => {
        end = resolve;
      }),
    };
    try {
      for (;;) {
        const period = await this.nextPeriod();
        try {
          if (await isCommitted(period, mark)) return;
          throw unreachable(place, cause);
        } catch (error) {
          if (error instanceof Fault || !isConnectionError(error)) throw error;
        }
      }
    } finally {
      this.unsettled = null;
      end();
    }
  }

  /** Waits a moment for the end of a doubt. Throws `store_unavailable`. */
  private async untilSettled(): Promise<void> {
    if (this.unsettled === null) return;
    const { end } = this.unsettled;
    const left = Math.max(0, this.lostAt + GRACE_MS - performance.now());
    await within(end, left, this.closing.signal, () => undefined).catch((error) => {
      throw error instanceof ConnectionLost ? this.lastFailure() : error;
    });
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.turn.then(work);
    this.turn = done.catch(() => undefined);
    return done;
  }

  /** Returns the present period; waits a moment for one after a loss. Throws `store_unavailable`. */
  private async currentPeriod(): Promise<PostgresPeriod> {
    if (this.closing.signal.aborted) throw this.closing.signal.reason;
    if (this.period !== null && !this.period.ended.aborted) return this.period;
    const left = this.lostAt + GRACE_MS - performance.now();
    const coming = this.nextPeriod();
    if (left <= 0) {
      coming.catch(() => undefined);
      throw this.lastFailure();
    }
    return within(coming, left, this.closing.signal, () => undefined).catch((error) => {
      throw error instanceof ConnectionLost ? this.lastFailure() : error;
    });
  }

  private failure: unknown = null;

  private lastFailure(): Fault {
    return unreachable(this.options.place, this.failure ?? new Error('it does not answer'));
  }

  private nextPeriod(): Promise<PostgresPeriod> {
    if (this.period !== null && !this.period.ended.aborted) return Promise.resolve(this.period);
    this.coming ??= this.reconnect().finally(() => {
      this.coming = null;
    });
    return this.coming;
  }

  /** Connects again until it succeeds. Rejects only when the store is closed or in another state than this process left it. */
  private async reconnect(): Promise<PostgresPeriod> {
    const { logger, place } = this.options;
    for (;;) {
      if (this.closing.signal.aborted) throw this.closing.signal.reason;
      let period: PostgresPeriod | null = null;
      try {
        period = await this.beginPeriod();
        await this.lockAgain(period);
        await this.requireSameState(period);
        logger.info('the database is back', {
          store: place,
          milliseconds: Math.round(performance.now() - this.lostAt),
        });
        this.enter(period);
        return period;
      } catch (error) {
        period?.end(error);
        this.failure = error;
        if (error instanceof StateLost) {
          this.options.onFatal(error);
          throw this.lastFailure();
        }
        await pause(RETRY_MS, this.closing.signal);
      }
    }
  }

  private enter(period: PostgresPeriod): void {
    this.period = period;
    const onEnd = () => {
      if (this.closing.signal.aborted) return;
      this.lostAt = performance.now();
      this.failure = period.ended.reason;
      this.options.logger.error('the database is lost, it is connected to again', {
        store: this.options.place,
        reason: messageOf(period.ended.reason),
      });
      this.nextPeriod().catch(() => undefined);
    };
    if (period.ended.aborted) onEnd();
    else period.ended.addEventListener('abort', onEnd, { once: true });
  }

  /** Connects to the first server that accepts writes. Throws the last error. */
  private async beginPeriod(): Promise<PostgresPeriod> {
    const { pg, servers, readers, processName } = this.options;
    let failure: unknown = new Error('the URL names no server');
    for (const server of servers()) {
      try {
        return await PostgresPeriod.begin({ pg, readers, config: { ...server, application_name: processName } });
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  private async lockAtStart(period: PostgresPeriod): Promise<void> {
    const end = performance.now() + LOCK_MS;
    while (!(await period.lock())) {
      if (performance.now() > end) {
        const holder = await period.holder();
        throw lockedBy(this.options.place, holder);
      }
      await pause(RETRY_MS, this.closing.signal);
    }
  }

  /** Takes the lock after a loss. The server may not have noticed yet that this process's own former session is gone. */
  private async lockAgain(period: PostgresPeriod): Promise<void> {
    while (!(await period.lock())) {
      await period.writer.query(
        `select pg_terminate_backend(a.pid) from pg_stat_activity a
         where a.application_name = $1 and a.pid in (select pid from pg_locks where locktype = 'advisory' and granted)`,
        [this.options.processName],
      );
      await pause(RETRY_MS, AbortSignal.any([this.closing.signal, period.ended]));
    }
  }

  /** Throws `StateLost` when the store is not as this process left it. */
  private async requireSameState(period: PostgresPeriod): Promise<void> {
    // A write, because its confirmation also confirms what was committed before it, on a standby as well.
    const { rowCount } = await period.writer.query('update meta set value = $1 where key = $2 and value = $1', [
      this.options.processName,
      WRITER_KEY,
    ]);
    if (rowCount !== 1) throw new StateLost('another orchestrator has written to the store meanwhile');
    if (this.lastEventId === null) return;
    const { rows } = await period.writer.query('select id from audit_events order by seq desc limit 1');
    const expected = [this.lastEventId, ...eventIds(this.unsettled?.mark)];
    if (!expected.includes(rows[0]?.id)) {
      throw new StateLost(
        'the store lacks events that were committed: the server lost them, or was replaced by an older copy',
      );
    }
  }

  private faultOf(error: unknown): unknown {
    return postgresFault(this.options.place, error);
  }
}

const eventIds = (mark: Mark | undefined): readonly string[] =>
  mark !== undefined && 'eventId' in mark ? [mark.eventId] : [];

/** Thrown when the connection was lost during a commit. */
class CommitUnknown extends Error {
  override readonly name = 'CommitUnknown';

  constructor(cause: unknown) {
    super('the answer of a commit was lost', { cause });
  }
}

/** Thrown when the store's state is another one than this process believes. */
class StateLost extends Error {
  override readonly name = 'StateLost';
}

async function isCommitted({ writer }: PostgresPeriod, mark: Mark): Promise<boolean> {
  const { rows } =
    'eventId' in mark
      ? await writer.query('select 1 from audit_events where id = $1', [mark.eventId])
      : await writer.query('select 1 from meta where key = $1 and value = $2', [BATCH_KEY, mark.batch]);
  return rows.length > 0;
}

/** Waits; rejects when the signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** A session of another role is no orchestrator of this store, because the schema belongs to one role. */
function lockedBy(place: string, holder: LockHolder | null): Fault {
  if (holder === null || holder.isOwnRole) {
    return new Fault('data_dir_locked', `${place} is in use by another orchestrator (${holder?.place ?? 'unknown'})`, {
      hint: 'stop the other one; each orchestrator needs a database of its own',
    });
  }
  const { role, pid } = holder;
  return new Fault('data_dir_locked', `process ${pid} of the server holds the lock of ${place}, as the role ${role}`, {
    hint: `as an administrator of the server: select pg_terminate_backend(${pid}); and to keep other roles out: revoke connect on database NAME from public`,
  });
}
