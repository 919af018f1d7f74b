/** What there is to do with the audit log beside writing and listing it. */
import type { Clock } from '../../src/kernel/clock.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Queryable } from '../store/queryable.js';
import { AuditFeed } from './audit-feed.js';
import type { AuditKey } from './audit-key.js';
import { AuditPruning } from './audit-pruning.js';
import { AuditRetention } from './audit-retention.js';
import { Verification } from './audit-verification.js';
import { Checkpoints } from './checkpoints.js';
import type { EventBus } from './event-bus.js';
import type { UnitOfWork } from './unit-of-work.js';

export interface Audit {
  readonly checkpoints: Checkpoints;
  readonly pruning: AuditPruning;
  readonly retention: AuditRetention;
  readonly verification: Verification;
  readonly feed: AuditFeed;
}

export interface AuditOptions {
  readonly db: Queryable;
  readonly uow: UnitOfWork;
  readonly bus: EventBus;
  readonly key: AuditKey;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Unix milliseconds by which age is judged. */
  readonly ageTime: () => number;
  /** That of the store as it is now. */
  readonly epoch: (db: Queryable) => Promise<number>;
  /** Days of the configuration that events are kept, null for ever; asked each time. */
  readonly retentionDays: () => number | null;
}

export function createAudit(options: AuditOptions): Audit {
  const retention = new AuditRetention({ ...options, standard: options.retentionDays });
  return {
    checkpoints: new Checkpoints(options),
    pruning: new AuditPruning({ ...options, days: (db) => retention.days(db) }),
    retention,
    verification: new Verification(options),
    feed: new AuditFeed(options),
  };
}
