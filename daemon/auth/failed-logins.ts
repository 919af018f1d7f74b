/** Failed logins as audit events: at most one a minute per subject, with the count of failures it stands for. */
import { messageOf } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { Core } from '../core/core.js';
import type { DomainEvent, Party } from '../core/domain-event.js';

export type LoginFailure = 'unknown_operator' | 'signature_verification_failed' | 'operator_expired' | 'rate_limited';

interface FailedLogin {
  readonly reason: LoginFailure;
  /** Party that tried to log in; failures with the same reason and party are counted together. */
  readonly party: Party;
  readonly address: string | null;
  readonly requestId: string;
}

interface Tally {
  /** Milliseconds on the monotonic clock. */
  reportedAt: number;
  unreported: number;
  last: FailedLogin;
}

const INTERVAL_MS = 60_000;

type FailedLoginsOptions = Pick<Core, 'clock' | 'logger' | 'uow'>;

export class FailedLogins {
  private readonly options: FailedLoginsOptions;
  private readonly tallies = new Map<string, Tally>();

  constructor(options: FailedLoginsOptions) {
    this.options = options;
  }

  /** Counts a failure, and reports it unless one was reported within the last minute. Never throws. */
  async record(failure: FailedLogin): Promise<void> {
    const subject = `${failure.reason} ${failure.party.id}`;
    const now = this.options.clock.monotonic();
    const tally = this.tallies.get(subject) ?? { reportedAt: now - INTERVAL_MS, unreported: 0, last: failure };
    this.tallies.set(subject, tally);
    tally.unreported += 1;
    tally.last = failure;
    if (now - tally.reportedAt >= INTERVAL_MS) await this.report(tally);
  }

  /** Reports failures held back for a minute; `everything` includes younger ones. Call it periodically. */
  async flush(everything = false): Promise<void> {
    const due = this.options.clock.monotonic() - INTERVAL_MS;
    for (const [subject, tally] of this.tallies) {
      if (!everything && tally.reportedAt > due) continue;
      if (tally.unreported > 0) await this.report(tally);
      else this.tallies.delete(subject);
    }
  }

  /**
   * Reports a tally. A count that cannot be stored is kept for a retry, so the refusal stands when the store is
   * read-only.
   */
  private async report(tally: Tally): Promise<void> {
    const count = tally.unreported;
    const reportedAt = tally.reportedAt;
    tally.unreported = 0;
    tally.reportedAt = this.options.clock.monotonic();
    try {
      await this.options.uow.write(async (_tx, emit) => emit(eventOf(tally.last, count)));
    } catch (error) {
      tally.unreported += count;
      tally.reportedAt = reportedAt;
      this.options.logger.warn('failed logins could not be audited yet', { count, reason: messageOf(error) });
    }
  }
}

function eventOf({ reason, party, address, requestId }: FailedLogin, count: number): DomainEvent {
  const metadata: JsonObject = { reason, count, address, request_id: requestId };
  const times = count === 1 ? '' : ` ${count} times`;
  return {
    type: 'operator.login_failed',
    actor: party,
    target: party,
    summary: `${party.name} failed to log in${times}: ${reason}`,
    metadata,
  };
}
