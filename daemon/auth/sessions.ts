/** Sessions of operators. Only the hash of a token is stored, so a copy of the store does not allow a login. */
import { hash } from 'node:crypto';
import type { Transaction } from 'kysely';
import type { Operator } from '../../src/contract/operators.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import type { DomainEvent, Party, RequestContext } from '../core/domain-event.js';
import type { Rights } from '../core/rights.js';
import { preparedQuery } from '../database/prepared-query.js';
import type { Database, NewRow, Queryable, Row } from '../database/schema.js';
import {
  findActiveOperator,
  isExpired,
  type OperatorRow,
  operatorOfRow,
  partyOfOperator,
  rightsOfRow,
  touchRobot,
} from './operator-store.js';
import type { SessionEvents } from './session-events.js';
import { UnstoredSessions } from './unstored-sessions.js';

const PREFIX = 'orch_st_';
const TOKEN = /^orch_st_[A-Za-z0-9_-]{43}$/;
const HASH_DOMAIN = 'orch-session-v1';
/** Precision of the stored time of last use, in milliseconds. */
const TOUCH_MS = 60_000;
/**
 * Milliseconds by which a session's creation may be ahead of the clock, so that small clock corrections end no
 * session.
 */
const AHEAD_MS = 5 * 60_000;

interface SessionsOptions extends Pick<Core, 'bus' | 'clock' | 'db' | 'logger' | 'randomBytes' | 'uow'> {
  /** Returns the lifetime of newly issued tokens in milliseconds. */
  readonly lifetimeMs: () => number;
  readonly sessionEvents: SessionEvents;
}

interface Session {
  readonly operator: Operator;
  readonly rights: Rights;
  /** Unix seconds. */
  readonly expiresAt: number;
}

export interface IssuedToken {
  readonly token: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

export class Sessions {
  private readonly options: SessionsOptions;
  private readonly touching = new Set<string>();
  private readonly known = new KnownSessions();
  private readonly unstored: UnstoredSessions;

  constructor(options: SessionsOptions) {
    this.options = options;
    this.unstored = new UnstoredSessions({ ...options, insert: insertSession });
    // Events are published after their commit, and before the change that made them is answered.
    options.bus.subscribe('all', ({ type }) => {
      if (type.startsWith('operator.')) this.known.forget();
    });
  }

  /** Opens a session. The caller's transaction must ensure that the operator is active. */
  async issue(tx: Transaction<Database>, operator: OperatorRow, address: string | null): Promise<IssuedToken> {
    const { row, issued } = this.newSession(operator, address);
    await insertSession(tx, row);
    if (operator.robot === 1) await touchRobot(tx, operator.operator_id, row.last_used_at);
    await deleteOldestSessions(tx, operator.operator_id);
    return issued;
  }

  /**
   * Opens a session that is stored later, with the event of its login, because the store refuses writes now. Returns null when too
   * many wait already.
   */
  issueUnstored(operator: OperatorRow, address: string | null, event: DomainEvent): IssuedToken | null {
    const { row, issued } = this.newSession(operator, address);
    return this.unstored.keep({ session: row, event }) ? issued : null;
  }

  /** Reads sessions anew: call it after a change of sessions without an event. */
  forget(): void {
    this.known.forget();
  }

  /** Stores sessions that the store has refused, as far as it takes them now. Call it periodically. */
  storeLate(): Promise<void> {
    return this.unstored.store();
  }

  private newSession({ operator_id, expires_at: end }: OperatorRow, address: string | null) {
    const { clock, randomBytes, lifetimeMs } = this.options;
    const token = PREFIX + Buffer.from(randomBytes(32)).toString('base64url');
    const now = clock.now();
    const expires_at = now + lifetimeMs();
    const times = { created_at: now, expires_at, last_used_at: now };
    const row: SessionRow = { token_hash: hashOf(token), operator_id, ...times, address: address ?? '' };
    return { row, issued: { token, expiresAt: toSeconds(Math.min(expires_at, end ?? expires_at)) } };
  }

  /** Returns the session of a token, or null unless it is unexpired and its operator is active. */
  async authenticate(token: string): Promise<Session | null> {
    if (!TOKEN.test(token)) return null;
    const tokenHash = hashOf(token);
    const { db } = this.options;
    const stored = this.known.get(tokenHash) ?? (await this.known.read(db, tokenHash));
    const known = stored ?? (await this.findUnstored(tokenHash));
    if (known === null || !isValid(known, this.options.clock.now())) return null;
    this.touch(known);
    return known.session;
  }

  private async findUnstored(tokenHash: string): Promise<KnownSession | null> {
    const row = this.unstored.find(tokenHash);
    const operator = row && (await findActiveOperator(this.options.db, row.operator_id));
    return row && operator && knownSession(row, operator);
  }

  /** Logs out. Throws `unauthenticated` when the session is already gone. */
  async revoke(token: string, context: RequestContext): Promise<void> {
    const hash = hashOf(token);
    if (this.unstored.end(hash)) return;
    const { uow, sessionEvents } = this.options;
    let counted: Party | null = null;
    await uow.write(async (tx, emit) => {
      const found = await findSession(tx, hash);
      if (!found) throw unauthenticated();
      await deleteSession(tx, hash);
      const party = partyOfOperator(found.operator);
      const event = sessionEvents.single({ type: 'operator.logout', party, context });
      counted = event === null ? party : null;
      if (event !== null) emit(event);
    });
    this.forget();
    if (counted !== null) sessionEvents.count({ type: 'operator.logout', party: counted, context });
  }

  /**
   * Ends every session of an operator, in the transaction that removes the operator. Returns the number of sessions.
   */
  revokeAllOf(tx: Transaction<Database>, operatorId: string): Promise<number> {
    this.unstored.endAllOf(operatorId);
    return deleteSessionsOf(tx, operatorId);
  }

  /** Deletes the rows of expired sessions, which are already invalid. Returns the number deleted. */
  async prune(): Promise<number> {
    const now = this.options.clock.now();
    const deleted = await this.options.uow.write((tx) => deleteExpiredSessions(tx, { now, madeUpTo: now + AHEAD_MS }));
    this.known.forget();
    return deleted;
  }

  /** Updates the time of last use in the background, so that a read-only store does not block reads. */
  private touch(known: KnownSession): void {
    const { clock, uow, logger } = this.options;
    const { token_hash, operator_id } = known.row;
    const isRobot = known.session.operator.robot === true;
    const now = clock.now();
    if (Math.abs(now - known.lastUsedAt) < TOUCH_MS || this.touching.has(token_hash)) return;
    this.touching.add(token_hash);
    uow
      .write(async (tx) => {
        await touchSession(tx, token_hash, now);
        if (isRobot) await touchRobot(tx, operator_id, now);
      })
      .then(() => {
        known.lastUsedAt = now;
      })
      .catch((error) => logger.warn('the last use of a session was not stored', { reason: messageOf(error) }))
      .finally(() => this.touching.delete(token_hash));
  }
}

/**
 * Checks the expiry of the session and of its operator, and the creation time. Without the latter, a session made by a clock that
 * was ahead would live longer by that much.
 */
const isValid = ({ row, end }: Pick<KnownSession, 'end' | 'row'>, now: number): boolean =>
  !isExpired({ expires_at: end }, now) && row.created_at <= now + AHEAD_MS;

const hashOf = (token: string): string => hash('sha256', HASH_DOMAIN + token);

interface KnownSession {
  readonly row: SessionRow;
  readonly session: Session;
  /** End of the session or of its operator, whichever comes first, in Unix milliseconds. */
  readonly end: number;
  /** Stored time of last use, in Unix milliseconds. */
  lastUsedAt: number;
}

function knownSession(row: SessionRow, operator: OperatorRow): KnownSession {
  const end = Math.min(row.expires_at, operator.expires_at ?? row.expires_at);
  const session = { operator: operatorOfRow(operator), rights: rightsOfRow(operator), expiresAt: toSeconds(end) };
  return { row, session, end, lastUsedAt: row.last_used_at };
}

/**
 * Sessions of active operators by the hash of their token, kept between requests: the benchmark rows of the API miss
 * their goals when each request reads its session. A kept session may have expired.
 */
class KnownSessions {
  private sessions = new Map<string, KnownSession>();

  get(tokenHash: string): KnownSession | undefined {
    return this.sessions.get(tokenHash);
  }

  /** Reads and keeps a session; returns null when it does not exist or its operator is removed. */
  async read(db: Queryable, tokenHash: string): Promise<KnownSession | null> {
    // Sessions that were read before a change are kept in a map that `forget` has dropped.
    const { sessions } = this;
    const found = await findSession(db, tokenHash);
    if (found === null) return null;
    const { session: row, operator } = found;
    const known = knownSession(row, operator);
    sessions.set(tokenHash, known);
    return known;
  }

  /** Forgets every session. Call it after each change of sessions or operators, before the change is answered. */
  forget(): void {
    this.sessions = new Map();
  }
}

type SessionRow = Row<'sessions'>;

interface SessionOfOperator {
  readonly session: SessionRow;
  readonly operator: OperatorRow;
}

async function insertSession(db: Queryable, session: NewRow<'sessions'>): Promise<void> {
  await db.insertInto('sessions').values(session).execute();
}

/** Sessions of one operator; a further one ends the oldest. */
const SESSIONS = 1_000;

async function deleteOldestSessions(db: Queryable, operatorId: string): Promise<void> {
  const own = db.selectFrom('sessions').select('token_hash').where('operator_id', '=', operatorId);
  const oldest = await own.orderBy('created_at', 'desc').limit(SESSIONS).offset(SESSIONS).execute();
  if (oldest.length === 0) return;
  const hashes = oldest.map(({ token_hash }) => token_hash);
  await db.deleteFrom('sessions').where('token_hash', 'in', hashes).execute();
}

/** Returns the session and its active operator, or null. The session may be expired. */
async function findSession(db: Queryable, tokenHash: string): Promise<SessionOfOperator | null> {
  const [row] = await sessionByToken(db, tokenHash);
  if (row === undefined) return null;
  const { token_hash, created_at, address, session_expires_at, session_last_used_at, ...operator } = row;
  const { operator_id } = operator;
  const times = { created_at, expires_at: session_expires_at, last_used_at: session_last_used_at };
  return { session: { token_hash, operator_id, address, ...times }, operator };
}

const sessionByToken = preparedQuery((db, tokenHash: string) =>
  db
    .selectFrom('sessions')
    .innerJoin('operators', 'operators.operator_id', 'sessions.operator_id')
    .selectAll('operators')
    .select(['token_hash', 'created_at', 'address'])
    .select(['sessions.expires_at as session_expires_at', 'sessions.last_used_at as session_last_used_at'])
    .where('token_hash', '=', tokenHash)
    .where('removed_at', 'is', null),
);

async function touchSession(db: Queryable, tokenHash: string, lastUsedAt: number): Promise<void> {
  await db.updateTable('sessions').set({ last_used_at: lastUsedAt }).where('token_hash', '=', tokenHash).execute();
}

/** Returns false when there was no such session. */
async function deleteSession(db: Queryable, tokenHash: string): Promise<boolean> {
  const result = await db.deleteFrom('sessions').where('token_hash', '=', tokenHash).executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Returns the number deleted. */
async function deleteSessionsOf(db: Queryable, operatorId: string): Promise<number> {
  const result = await db.deleteFrom('sessions').where('operator_id', '=', operatorId).executeTakeFirst();
  return Number(result.numDeletedRows);
}

/** Ends every session. Returns the number deleted. */
export async function deleteAllSessions(db: Queryable): Promise<number> {
  const result = await db.deleteFrom('sessions').executeTakeFirst();
  return Number(result.numDeletedRows);
}

/**
 * Deletes sessions that expired by `now` or were made after `madeUpTo`, both in Unix milliseconds. Returns the number
 * deleted.
 */
async function deleteExpiredSessions(
  db: Queryable,
  { now, madeUpTo }: { readonly now: number; readonly madeUpTo: number },
): Promise<number> {
  const result = await db
    .deleteFrom('sessions')
    .where((is) => is.or([is('expires_at', '<=', now), is('created_at', '>', madeUpTo)]))
    .executeTakeFirst();
  return Number(result.numDeletedRows);
}

/** Returns the fault of a request without a valid session. */
export const unauthenticated = (): Fault =>
  new Fault('unauthenticated', 'the request has no valid session token', { hint: 'log in with: orch login' });
