/** How long audit events are kept: the setting of the configuration until an admin says otherwise. */
import { getMeta, setMeta } from '../store/meta.js';
import type { Queryable } from '../store/queryable.js';
import { AUDIT_LOG } from './audit-party.js';
import { eventOfRequest } from './event-of-request.js';
import type { RequestContext } from './request-context.js';
import type { UnitOfWork } from './unit-of-work.js';

export interface AuditRetentionOptions {
  readonly db: Queryable;
  readonly uow: UnitOfWork;
  /** Days of the configuration, null for ever; asked each time. */
  readonly standard: () => number | null;
}

/** In `meta`: days, or `null`; absent as long as nobody has set it. */
const KEY = 'audit.retention_days';

export class AuditRetention {
  private readonly options: AuditRetentionOptions;

  constructor(options: AuditRetentionOptions) {
    this.options = options;
  }

  /** Days that events are kept; null is for ever. */
  async days(db: Queryable = this.options.db): Promise<number | null> {
    const text = await getMeta(db, KEY);
    return text === null ? this.options.standard() : JSON.parse(text);
  }

  async set(days: number | null, context: RequestContext): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      const before = await this.days(tx);
      await setMeta(tx, KEY, JSON.stringify(days));
      emit(
        eventOfRequest(context, {
          type: 'audit.retention_changed',
          target: AUDIT_LOG,
          summary: `${context.actor.name} set audit events to be kept ${lengthOf(days)}, before ${lengthOf(before)}`,
          metadata: { before, after: days },
        }),
      );
    });
  }
}

const lengthOf = (days: number | null): string => {
  if (days === null) return 'for ever';
  return days === 1 ? 'for 1 day' : `for ${days} days`;
};
