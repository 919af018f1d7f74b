/**
 * A period in which the server answers. It has one session that writes, a pool that reads, and one that watches. When any of them
 * finds the server gone, the whole period ends, and all of its statements are rejected.
 */
import { setMaxListeners } from 'node:events';
import type { ClientConfig, QueryResult as PgResult, Pool, PoolClient } from 'pg';
import { Fault, messageOf } from '../../../src/kernel/fault.js';
import type { PgModule } from './load-pg.js';
import { type LockHolder, lockHolder, STORE_LOCK } from './lock-holder.js';
import { ConnectionLost, isConnectionError } from './postgres-error.js';
import { PostgresSession, SESSION_SETUP, storable, within } from './postgres-session.js';

const BEAT_MS = 1_000;
/** Time without a statement after which the server ends the session of an orchestrator that hangs, and with it the lock of the store. */
const HANGS = '10s';
/** Milliseconds without an answer after which the server counts as gone. */
const SILENT_MS = 8_000;
const READ_MS = 30_000;
const CONNECT_MS = 5_000;

export interface PeriodOptions {
  readonly pg: PgModule;
  readonly config: ClientConfig;
  /** Sessions that read at the same time. */
  readonly readers: number;
}

export class PostgresPeriod {
  readonly writer: PostgresSession;
  private readonly watcher: PostgresSession;
  private readonly pool: Pool;
  private readonly over = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private beatMs = 0;

  private constructor({ pg, config, readers }: PeriodOptions, writer: PostgresSession, watcher: PostgresSession) {
    this.writer = writer;
    this.watcher = watcher;
    this.pool = new pg.Pool({
      ...config,
      max: readers,
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      onConnect: async (client) => {
        await client.query(`${SESSION_SETUP}; set statement_timeout = '${READ_MS}ms'`);
      },
    });
    // Each statement that waits for its answer listens.
    setMaxListeners(0, this.over.signal);
    this.pool.on('error', (error) => this.end(error));
    // A session that is lent out reports its loss itself, and nowhere else.
    this.pool.on('connect', (client) => client.on('error', (error) => this.end(error)));
    for (const session of [writer, watcher]) {
      session.ended.addEventListener('abort', () => this.end(session.ended.reason), { once: true });
      if (session.ended.aborted) this.end(session.ended.reason);
    }
    this.watch();
  }

  /**
   * Connects to a server that accepts writes. Throws `store_unavailable` for one that only reads, and the errors of the library.
   * The caller locks the store before it writes.
   */
  static async begin(options: PeriodOptions): Promise<PostgresPeriod> {
    const { pg, config } = options;
    const writer = await PostgresSession.connect(pg, config);
    try {
      await requireWritable(writer);
      await writer.query(`set idle_session_timeout = '${HANGS}'`);
      return new PostgresPeriod(options, writer, await PostgresSession.connect(pg, config));
    } catch (error) {
      writer.abandon(error);
      throw error;
    }
  }

  /** Aborts when the period is over, with the reason. */
  get ended(): AbortSignal {
    return this.over.signal;
  }

  /** Round-trip time of the newest answer, in milliseconds. */
  get latencyMs(): number {
    return this.beatMs;
  }

  /** Takes the lock that keeps other orchestrators out, for as long as the writer's session lives. Returns false while it is held. */
  async lock(): Promise<boolean> {
    const { rows } = await this.writer.query(`select pg_try_advisory_lock(${STORE_LOCK}) as taken`);
    return rows[0]?.taken === true;
  }

  /** Returns who holds the lock; null when it is free by now. */
  async holder(): Promise<LockHolder | null> {
    return lockHolder((text, values) => this.watcher.query(text, values));
  }

  /** Runs a statement in a session that reads. */
  async read(text: string, values: readonly unknown[]): Promise<PgResult> {
    return this.withReader((query) => query(text, values));
  }

  /** Lends a session of the pool. It is dropped when its connection fails. */
  async withReader<T>(
    work: (query: (text: string, values?: readonly unknown[]) => Promise<PgResult>) => Promise<T>,
  ): Promise<T> {
    const client = await this.connect();
    let failure: unknown;
    try {
      return await work((text, values = []) =>
        within(client.query(text, values.map(storable)), READ_MS + CONNECT_MS, this.ended, () => undefined).catch(
          (error) => {
            if (isConnectionError(error)) failure = error;
            throw error;
          },
        ),
      );
    } finally {
      client.release(failure !== undefined || this.ended.aborted);
    }
  }

  private async connect(): Promise<PoolClient> {
    const connecting = this.pool.connect();
    try {
      return await within(connecting, READ_MS, this.ended, () => undefined);
    } catch (error) {
      // A session that arrives later must return to the pool.
      void connecting.then((client) => client.release(true)).catch(() => undefined);
      throw error;
    }
  }

  /** Ends the period at once. Idempotent. */
  end(reason: unknown): void {
    if (this.ended.aborted) return;
    clearTimeout(this.timer);
    this.over.abort(new ConnectionLost(`Connection terminated: ${messageOf(reason)}`, { cause: reason }));
    this.writer.abandon(reason);
    this.watcher.abandon(reason);
    void this.pool.end().catch(() => undefined);
  }

  /** Ends the period after its statements. */
  async close(): Promise<void> {
    clearTimeout(this.timer);
    await this.pool.end().catch(() => undefined);
    await this.writer.end();
    await this.watcher.end();
    this.end(new ConnectionLost('the store is closed'));
  }

  private watch(): void {
    this.timer = setTimeout(() => void this.beat(), BEAT_MS);
    this.timer.unref();
  }

  private async beat(): Promise<void> {
    const start = performance.now();
    try {
      // The beat has to run in the session that holds the lock: when a process is stopped, its kernel still answers keepalives.
      const session = this.writer.isIdle ? this.writer : this.watcher;
      await session.query('select 1', [], SILENT_MS);
      this.beatMs = performance.now() - start;
      if (!this.ended.aborted) this.watch();
    } catch (error) {
      this.end(error);
    }
  }
}

async function requireWritable(session: PostgresSession): Promise<void> {
  const { rows } = await session.query("select current_setting('transaction_read_only') as read_only");
  if (rows[0]?.read_only === 'on') {
    throw new Fault('store_unavailable', 'the server only reads, as a standby does', {
      hint: 'promote it, or name the primary in the URL of the store',
    });
  }
}
