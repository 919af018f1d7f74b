/**
 * Logins and logouts as audit events. Those of one operator from one network that come in great numbers are counted: the first
 * ones of a minute have events of their own, and the others share one, so that logins cannot fill the audit log. A login
 * from another network always has its own.
 */
import { messageOf } from '../../src/kernel/fault.js';
import { hostNetworkOf } from '../../src/kernel/ip-network.js';
import type { Core } from '../core/core.js';
import type { DomainEvent, Party, RequestContext } from '../core/domain-event.js';

type SessionEventType = 'operator.login' | 'operator.logout';

/** A login or logout that has happened. */
interface SessionChange {
  readonly type: SessionEventType;
  readonly party: Party;
  readonly context: Pick<RequestContext, 'address' | 'requestId'>;
}

interface Tally {
  /** Milliseconds on the monotonic clock at which its minute began. */
  readonly since: number;
  /** Events of their own within the minute. */
  singles: number;
  /** Changes without an event so far. */
  unreported: number;
  last: SessionChange;
}

const MINUTE_MS = 60_000;
/** Changes of one type, operator and network within a minute that have events of their own. */
const SINGLES = 10;

const DONE: Readonly<Record<SessionEventType, string>> = {
  'operator.login': 'logged in',
  'operator.logout': 'logged out',
};

export class SessionEvents {
  private readonly options: Pick<Core, 'clock' | 'logger' | 'uow'>;
  private readonly tallies = new Map<string, Tally>();

  constructor(options: Pick<Core, 'clock' | 'logger' | 'uow'>) {
    this.options = options;
  }

  /**
   * Returns the event of a change, for the transaction that makes it; null for one that is counted: call `count` after the
   * transaction then.
   */
  single(change: SessionChange): DomainEvent | null {
    const tally = this.tallyOf(change);
    if (tally.singles >= SINGLES) return null;
    tally.singles += 1;
    return eventOf(change, 1);
  }

  /** Counts a change that has no event of its own. */
  count(change: SessionChange): void {
    const tally = this.tallyOf(change);
    tally.unreported += 1;
    tally.last = change;
  }

  /** Stores what was counted in minutes that are over; `everything` includes the current ones. Call it periodically. */
  async flush(everything = false): Promise<void> {
    const due = this.options.clock.monotonic() - MINUTE_MS;
    for (const [subject, tally] of this.tallies) {
      if (!everything && tally.since > due) continue;
      this.tallies.delete(subject);
      if (tally.unreported > 0) await this.report(subject, tally);
    }
  }

  private tallyOf(change: SessionChange): Tally {
    const { address } = change.context;
    const network = address === null ? '' : hostNetworkOf(address);
    const subject = `${change.type} ${change.party.id} ${network}`;
    const now = this.options.clock.monotonic();
    const known = this.tallies.get(subject);
    // Earlier counts are carried on until they are stored.
    const isOver = known !== undefined && now - known.since >= MINUTE_MS && known.unreported === 0;
    if (known !== undefined && !isOver) return known;
    const tally = { since: now, singles: 0, unreported: 0, last: change };
    this.tallies.set(subject, tally);
    return tally;
  }

  private async report(subject: string, tally: Tally): Promise<void> {
    const { uow, logger } = this.options;
    try {
      await uow.write(async (_tx, emit) => emit(eventOf(tally.last, tally.unreported)));
    } catch (error) {
      const newer = this.tallies.get(subject);
      if (newer === undefined) this.tallies.set(subject, tally);
      else newer.unreported += tally.unreported;
      logger.warn('logins could not be audited yet', { count: tally.unreported, reason: messageOf(error) });
    }
  }
}

function eventOf({ type, party, context: { address, requestId } }: SessionChange, count: number): DomainEvent {
  const times = count === 1 ? '' : ` ${count} more times`;
  const metadata = { address, request_id: requestId, ...(count === 1 ? {} : { count }) };
  return { type, actor: party, target: party, summary: `${party.name} ${DONE[type]}${times}`, metadata };
}
