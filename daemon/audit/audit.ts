/** Wires the services of the audit log: checkpoints, pruning, retention, verification and feed. */
import type { Core } from '../core/core.js';
import { AUDIT_LOG, eventOfRequest, type RequestContext } from '../core/domain-event.js';
import { requireMatch } from '../core/entity-tag.js';
import { getMetaJson, setMetaJson } from '../database/meta.js';
import type { Queryable } from '../database/schema.js';
import { AuditFeed } from './audit-feed.js';
import { AuditPruning } from './audit-pruning.js';
import { Verification } from './audit-verification.js';
import type { AuditKey } from './checkpoint.js';
import { Checkpoints } from './checkpoints.js';

export interface Audit {
  readonly checkpoints: Checkpoints;
  readonly pruning: AuditPruning;
  readonly retention: AuditRetention;
  readonly verification: Verification;
  readonly feed: AuditFeed;
}

/**
 * Returns the services of the audit log.
 * @param own `epoch` returns the current epoch of the store
 */
export function createAudit(
  core: Pick<Core, 'ageTime' | 'bus' | 'clock' | 'db' | 'logger' | 'settings' | 'uow'>,
  own: { readonly key: AuditKey; readonly epoch: (db: Queryable) => Promise<number> },
): Audit {
  const tools = { ...core, ...own };
  const retention = new AuditRetention({ ...core, standard: () => core.settings()['audit.retention_days'] || null });
  return {
    checkpoints: new Checkpoints(tools),
    pruning: new AuditPruning({ ...tools, days: (db) => retention.days(db) }),
    retention,
    verification: new Verification(tools),
    feed: new AuditFeed(tools),
  };
}

interface AuditRetentionOptions extends Pick<Core, 'db' | 'uow'> {
  /** Returns the configured retention in days, null to keep events for ever; called on each read. */
  readonly standard: () => number | null;
}

/** Key in `meta` of the retention that an admin has set, as JSON: days, or `null` for ever; absent until it is set. */
const KEY = 'audit.retention_days';

/** Retention of audit events: the configured one until an admin sets another. */
export class AuditRetention {
  private readonly options: AuditRetentionOptions;

  constructor(options: AuditRetentionOptions) {
    this.options = options;
  }

  /** Returns the retention in days; null keeps events for ever. */
  async days(db: Queryable = this.options.db): Promise<number | null> {
    const days = await getMetaJson<number | null>(db, KEY);
    return days === undefined ? this.options.standard() : days;
  }

  /** Sets the retention in days, null for ever, and emits an event. */
  async set(days: number | null, context: RequestContext): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      const before = await this.days(tx);
      requireMatch(context, 'the retention', { retention_days: before });
      await setMetaJson(tx, KEY, days);
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
