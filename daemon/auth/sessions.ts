/** Sessions of operators. Only the hash of a token is stored, so the store cannot be used to log in. */
import { createHash } from 'node:crypto';
import type { Kysely, Transaction } from 'kysely';
import type { Operator } from '../../src/contract/operators.js';
import { type Clock, toSeconds } from '../../src/kernel/clock.js';
import { messageOf } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';
import { eventOfRequest } from '../events/event-of-request.js';
import type { RequestContext } from '../events/request-context.js';
import type { UnitOfWork } from '../events/unit-of-work.js';
import type { OperatorRow } from '../store/operators.js';
import type { Database } from '../store/schema.js';
import {
  deleteExpiredSessions,
  deleteSession,
  deleteSessionsOf,
  findSession,
  insertSession,
  type SessionRow,
  touchSession,
} from '../store/sessions.js';
import { unauthenticated } from './access.js';
import { operatorOfRow, partyOfOperator } from './operator-record.js';
import type { RandomBytes } from './random.js';

const PREFIX = 'orch_st_';
const TOKEN = /^orch_st_[A-Za-z0-9_-]{43}$/;
const HASH_DOMAIN = 'orch-session-v1';
/** The time of last use is kept to that precision. */
const TOUCH_MS = 60_000;
/** A session may have been made by a clock that was ahead by this much, in milliseconds: corrections of a clock end no login. */
const AHEAD_MS = 5 * 60_000;

export interface SessionsOptions {
  readonly db: Kysely<Database>;
  readonly unitOfWork: UnitOfWork;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly logger: Logger;
  /** Of tokens that are issued from now on, in milliseconds. */
  readonly lifetimeMs: () => number;
}

export interface Session {
  readonly operator: Operator;
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

  constructor(options: SessionsOptions) {
    this.options = options;
  }

  /** Opens a session in a transaction that makes sure the operator is active. */
  async issue(tx: Transaction<Database>, operator: OperatorRow, address: string | null): Promise<IssuedToken> {
    const { clock, random, lifetimeMs } = this.options;
    const token = PREFIX + Buffer.from(random(32)).toString('base64url');
    const now = clock.now();
    const expiresAt = now + lifetimeMs();
    await insertSession(tx, {
      token_hash: hashOf(token),
      operator_id: operator.operator_id,
      created_at: now,
      expires_at: expiresAt,
      last_used_at: now,
      address: address ?? '',
    });
    return { token, expiresAt: toSeconds(expiresAt) };
  }

  /** Null for whatever is no token of an active operator's session that has not expired. */
  async authenticate(token: string): Promise<Session | null> {
    if (!TOKEN.test(token)) return null;
    const found = await findSession(this.options.db, hashOf(token));
    if (!found || !isValid(found.session, this.options.clock.now())) return null;
    this.touch(found.session);
    return { operator: operatorOfRow(found.operator), expiresAt: toSeconds(found.session.expires_at) };
  }

  /** Logs out. Throws `unauthenticated` when the session is gone already. */
  async revoke(token: string, context: RequestContext): Promise<void> {
    const hash = hashOf(token);
    await this.options.unitOfWork.write(async (tx, emit) => {
      const found = await findSession(tx, hash);
      if (!found) throw unauthenticated();
      await deleteSession(tx, hash);
      const target = partyOfOperator(found.operator);
      emit(eventOfRequest(context, { type: 'operator.logout', target, summary: `${target.name} logged out` }));
    });
  }

  /** Ends every session of an operator in the transaction that removes it; returns how many there were. */
  revokeAllOf(tx: Transaction<Database>, operatorId: string): Promise<number> {
    return deleteSessionsOf(tx, operatorId);
  }

  /** Drops the rows of expired sessions, which are of no use already; returns how many there were. */
  prune(): Promise<number> {
    const now = this.options.clock.now();
    return this.options.unitOfWork.write((tx) => deleteExpiredSessions(tx, { now, madeUpTo: now + AHEAD_MS }));
  }

  /** Nobody waits for it, and a store that cannot be written does not keep anybody from reading. */
  private touch({ token_hash, last_used_at }: SessionRow): void {
    const { clock, unitOfWork, logger } = this.options;
    const now = clock.now();
    if (Math.abs(now - last_used_at) < TOUCH_MS || this.touching.has(token_hash)) return;
    this.touching.add(token_hash);
    unitOfWork
      .write((tx) => touchSession(tx, token_hash, now))
      .catch((error) => logger.warn('the last use of a session was not stored', { reason: messageOf(error) }))
      .finally(() => this.touching.delete(token_hash));
  }
}

/** Without the second condition a session that was made while the clock was ahead would live as long as it was ahead. */
const isValid = ({ created_at, expires_at }: SessionRow, now: number): boolean =>
  expires_at > now && created_at <= now + AHEAD_MS;

const hashOf = (token: string): string => createHash('sha256').update(HASH_DOMAIN).update(token).digest('hex');
