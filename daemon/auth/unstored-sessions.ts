/**
 * Sessions that a full disk keeps out of the store, so that operators can log in and read what goes on. They are valid until the
 * orchestrator stops, and are stored, with the events of their logins, once there is room.
 */
import { isFault, messageOf } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import type { DomainEvent } from '../core/domain-event.js';
import type { NewRow } from '../database/schema.js';

/** Maximum sessions kept in memory; the refusal of the store stands for further ones. */
const MAX = 256;
/** Minimum milliseconds between two attempts to store them. */
const PAUSE_MS = 5_000;

export interface UnstoredLogin {
  readonly session: NewRow<'sessions'>;
  readonly event: DomainEvent;
}

interface UnstoredOptions extends Pick<Core, 'clock' | 'logger' | 'uow'> {
  /** Stores a session in a transaction. */
  readonly insert: (
    tx: Parameters<Parameters<Core['uow']['write']>[0]>[0],
    session: NewRow<'sessions'>,
  ) => Promise<void>;
}

export class UnstoredSessions {
  private readonly options: UnstoredOptions;
  /** Logins by the hash of the session's token, oldest first. */
  private readonly logins = new Map<string, UnstoredLogin>();
  /** Hashes of sessions that were ended before they were stored. Their logins are still to be recorded. */
  private readonly ended = new Set<string>();
  private triedAt = Number.NEGATIVE_INFINITY;
  private storing: Promise<void> | null = null;

  constructor(options: UnstoredOptions) {
    this.options = options;
  }

  /** Keeps a login. Returns false when there are too many already. */
  keep(login: UnstoredLogin): boolean {
    if (this.logins.size >= MAX) return false;
    this.logins.set(login.session.token_hash, login);
    return true;
  }

  /** Returns a session that has not ended, or null. The session may be expired. */
  find(tokenHash: string): NewRow<'sessions'> | null {
    const login = this.logins.get(tokenHash);
    if (login === undefined || this.ended.has(tokenHash)) return null;
    if (this.options.clock.monotonic() - this.triedAt >= PAUSE_MS) void this.store();
    return login.session;
  }

  /** Ends a session. Returns false when there was no such session. */
  end(tokenHash: string): boolean {
    if (!this.logins.has(tokenHash) || this.ended.has(tokenHash)) return false;
    this.ended.add(tokenHash);
    return true;
  }

  endAllOf(operatorId: string): void {
    for (const [tokenHash, { session }] of this.logins) if (session.operator_id === operatorId) this.end(tokenHash);
  }

  /** Stores what it can. Never rejects. */
  store(): Promise<void> {
    this.triedAt = this.options.clock.monotonic();
    this.storing ??= this.storeAll().finally(() => {
      this.storing = null;
    });
    return this.storing;
  }

  private async storeAll(): Promise<void> {
    const { uow, insert, logger } = this.options;
    for (const [tokenHash, { session, event }] of [...this.logins]) {
      try {
        await uow.write(async (tx, emit) => {
          if (!this.ended.has(tokenHash)) await insert(tx, session);
          emit(event);
        });
        this.logins.delete(tokenHash);
        this.ended.delete(tokenHash);
      } catch (error) {
        if (!isFault(error, 'store_unavailable'))
          logger.error('a login during a full disk was not stored', { reason: messageOf(error) });
        return;
      }
    }
  }
}
