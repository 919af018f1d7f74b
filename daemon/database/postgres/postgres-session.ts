/** One session on the server: connects, prepares statements, and gives up when the server is silent. */
import { setMaxListeners } from 'node:events';
import type { Client, ClientConfig, CustomTypesConfig, QueryResult as PgResult } from 'pg';
import { Fault } from '../../../src/kernel/fault.js';
import type { PgModule } from './load-pg.js';
import { ConnectionLost } from './postgres-error.js';

/** Milliseconds to connect, and to answer a statement. */
const CONNECT_MS = 5_000;
const ANSWER_MS = 30_000;
/** Maximum statements that a session prepares; others are planned each time. */
const PREPARED = 500;

/**
 * Schema that holds the store, and settings of each session. Commits wait for the disk as the server is set, never less. The server
 * notices within 15 seconds that the machine of a session is gone, and then releases the lock of the store.
 */
export const SESSION_SETUP = `
  set search_path = orch;
  set idle_in_transaction_session_timeout = '15s';
  set lock_timeout = '10s';
  set tcp_keepalives_idle = 5;
  set tcp_keepalives_interval = 3;
  set tcp_keepalives_count = 3;
  set tcp_user_timeout = '10s';
  set client_min_messages = warning`;

const INT8 = 20;
const NUMERIC = 1700;

/** Returns 64-bit integers and sums as numbers. Throws for values that a number cannot hold. */
export const numberTypes = (pg: PgModule): CustomTypesConfig => ({
  getTypeParser: ((id: number, format?: 'text' | 'binary') =>
    id === INT8 || id === NUMERIC ? exactNumber : pg.types.getTypeParser(id, format as 'text')) as never,
});

function exactNumber(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new Error(`${text} is too large for a number`);
  return value;
}

export class PostgresSession {
  private readonly client: Client;
  private readonly names: StatementNames;
  private readonly lost = new AbortController();
  /** Statements without an answer. */
  private waiting = 0;
  /** True once the server has warned since the newest commit was sent. */
  private hasWarned = false;

  private constructor(client: Client) {
    this.client = client;
    this.names = new StatementNames();
    // Each statement that waits for its answer listens.
    setMaxListeners(0, this.lost.signal);
    client.on('error', (error) => this.abandon(error));
    client.on('end', () => this.abandon(new ConnectionLost('the connection has ended')));
    client.on('notice', () => {
      this.hasWarned = true;
    });
  }

  /** Connects and applies the settings of each session. Throws the errors of the library. */
  static async connect(pg: PgModule, config: ClientConfig): Promise<PostgresSession> {
    const client = new pg.Client({ ...config, connectionTimeoutMillis: CONNECT_MS, keepAlive: true });
    const session = new PostgresSession(client);
    try {
      await client.connect();
      await session.query(SESSION_SETUP);
      return session;
    } catch (error) {
      session.abandon(error);
      throw error;
    }
  }

  /** Aborts when the session has ended, with its error. */
  get ended(): AbortSignal {
    return this.lost.signal;
  }

  /** True if no statement waits for its answer, and no transaction is open. */
  get isIdle(): boolean {
    return this.waiting === 0 && this.client.getTransactionStatus() === 'I';
  }

  /** Runs a statement. Throws `ConnectionLost` when the session ends before the answer. */
  async query(text: string, values: readonly unknown[] = [], timeout = ANSWER_MS): Promise<PgResult> {
    if (this.ended.aborted) throw lostBy(this.ended);
    const name = this.names.nameOf(text);
    this.waiting += 1;
    try {
      const answer = this.client.query({ ...(name === null ? {} : { name }), text, values: values.map(storable) });
      const silent = () => this.abandon(new ConnectionLost('the server does not answer'));
      return await within(answer, timeout, this.ended, silent);
    } finally {
      this.waiting -= 1;
    }
  }

  /**
   * Commits. Throws when the server rolled back instead; `ConnectionLost` when it is unknown whether it has committed, or its standby
   * did not confirm it: that is a warning, in the language of the server, and a commit has no other.
   */
  async commit(): Promise<void> {
    this.hasWarned = false;
    const { command } = await this.query('commit');
    if (command !== 'COMMIT') throw new Error('the transaction had failed before its commit');
    if (!this.hasWarned) return;
    this.abandon(new ConnectionLost('the standby did not confirm a commit'));
    throw lostBy(this.ended);
  }

  /** Ends the session at once; statements in flight are rejected. Idempotent. */
  abandon(error: unknown): void {
    if (this.ended.aborted) return;
    this.lost.abort(error);
    void this.client.end().catch(() => undefined);
  }

  /** Ends the session after the statements in flight. */
  async end(): Promise<void> {
    if (this.ended.aborted) return;
    await within(this.client.end(), CONNECT_MS, this.ended, () => undefined).catch(() => undefined);
    this.abandon(new ConnectionLost('the session was closed'));
  }
}

/** Replaces NUL characters, which PostgreSQL stores in no text. Programs on agents can send them, for example in the text of an error. */
export const storable = (value: unknown): unknown =>
  typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value;

const lostBy = ({ reason }: AbortSignal): unknown =>
  reason instanceof Fault
    ? reason
    : new ConnectionLost(`Connection terminated: ${reason?.message ?? reason}`, { cause: reason });

/**
 * Waits for an answer until the session ends or the time is over. After a pause of this process, timers run before the sockets
 * are read, so an answer that has arrived meanwhile still counts.
 */
export function within<T>(answer: Promise<T>, ms: number, ended: AbortSignal, onTimeout: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const onEnd = () => finish(() => reject(lostBy(ended)));
    const timer = setTimeout(() => setImmediate(() => setImmediate(late)), ms);
    let isDone = false;
    const late = () => {
      if (isDone) return;
      onTimeout();
      finish(() => reject(new ConnectionLost('the server does not answer')));
    };
    const finish = (settle: () => void) => {
      isDone = true;
      clearTimeout(timer);
      ended.removeEventListener('abort', onEnd);
      settle();
    };
    ended.addEventListener('abort', onEnd, { once: true });
    answer.then(
      (value) => finish(() => resolve(value)),
      (error) => finish(() => reject(error)),
    );
  });
}

/** Names the statements to prepare: those that a session runs for the second time. */
class StatementNames {
  private readonly named = new Map<string, string>();
  private readonly once = new Set<string>();

  /** Returns the name to prepare the statement under, or null to run it once. */
  nameOf(text: string): string | null {
    const known = this.named.get(text);
    if (known !== undefined) return known;
    if (!PREPARABLE.test(text)) return null;
    if (this.named.size < PREPARED && this.once.delete(text)) {
      const name = `orch_${this.named.size}`;
      this.named.set(text, name);
      return name;
    }
    this.once.add(text);
    for (const oldest of this.once) {
      if (this.once.size <= PREPARED) break;
      this.once.delete(oldest);
    }
    return null;
  }
}

const PREPARABLE = /^(select|insert|update|delete|with)\b/i;
