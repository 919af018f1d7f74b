/**
 * Housekeeping: small jobs that run once a minute, one after another. A job that fails is logged and retried in the
 * next round.
 */
import { toTimestamp } from '../src/kernel/clock.js';
import { messageOf } from '../src/kernel/fault.js';
import type { Logger } from '../src/kernel/logger.js';
import type { Service } from '../src/kernel/service.js';
import type { Settings } from '../src/settings/serve.js';
import type { Audit } from './audit/audit.js';
import type { Auth } from './auth/auth.js';
import { tellEnds } from './auth/operator-ends.js';
import type { Core } from './core/core.js';
import { type EventType, SYSTEM } from './core/domain-event.js';
import type { Queryable } from './database/schema.js';
import { deleteDriftBefore } from './engine/drift/drift-store.js';
import type { ModuleFiles } from './engine/modules/module-files.js';
import { deleteOutputsBefore } from './engine/operations/operation-outputs.js';
import { deleteOperationsBefore } from './engine/operations/operation-store.js';
import { deleteRolloutsBefore } from './engine/rollouts/rollout-store.js';
import type { Fleet } from './fleet/fleet.js';
import { deleteIdempotencyKeysBefore } from './http/idempotency.js';
import type { MetricsPoller } from './metrics/metrics-poller.js';
import { deleteNotificationsBefore } from './notify/notification-store.js';
import type { Notify } from './notify/notify.js';
import type { Secrets } from './secrets/secrets.js';
import type { TerminalParts } from './terminal/create-terminals.js';

interface Job {
  readonly name: string;
  run(): Promise<unknown>;
}

class Housekeeping implements Service {
  readonly name = 'housekeeping';
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> = Promise.resolve();
  private readonly options: { readonly jobs: readonly Job[]; readonly everyMs: number; readonly logger: Logger };

  constructor(options: { readonly jobs: readonly Job[]; readonly everyMs: number; readonly logger: Logger }) {
    this.options = options;
  }

  /** Begins with a round, because an orchestrator may run for less than one interval. */
  async start(): Promise<void> {
    this.round = this.runAll();
    this.timer = setInterval(() => {
      this.round = this.round.then(() => this.runAll());
    }, this.options.everyMs);
  }

  /** Waits for the round in flight. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.round;
  }

  private async runAll(): Promise<void> {
    for (const job of this.options.jobs) {
      try {
        await job.run();
      } catch (error) {
        this.options.logger.error('housekeeping failed', { job: job.name, reason: messageOf(error) });
      }
    }
  }
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** Parts with data to prune or flush. */
interface HousekeepingParts {
  readonly audit: Audit;
  readonly auth: Auth;
  readonly files: ModuleFiles;
  readonly fleet: Fleet;
  readonly metrics: MetricsPoller;
  readonly notify: Notify;
  readonly secrets: Secrets;
  readonly terminals: TerminalParts;
  /** Retries work that a full disk has deferred. */
  readonly late: () => Promise<void>;
}

export function createHousekeeping(core: Core, parts: HousekeepingParts): Housekeeping {
  const { audit, auth, files, fleet, metrics, notify, secrets, terminals } = parts;
  const retention = new Retention({ ...core, days: () => retentionDays(core.settings()) });
  return new Housekeeping({
    everyMs: MINUTE,
    logger: core.logger,
    jobs: [
      { name: 'work that a full disk has put off', run: () => parts.late() },
      { name: 'counted logins', run: () => auth.flush() },
      { name: 'files that no module names', run: () => files.prune() },
      { name: 'ends of operators', run: () => tellEnds(core) },
      { name: 'expired sessions', run: () => auth.sessions.prune() },
      { name: 'expired enrolment tokens', run: () => fleet.enrolmentTokens.prune() },
      { name: 'absent ephemeral agents', run: () => fleet.ephemeral.sweep() },
      { name: 'expired secrets', run: () => secrets.service.emitExpired() },
      { name: 'old addresses of logins', run: () => notify.pruneAddresses() },
      { name: 'old metrics', run: () => metrics.prune() },
      { name: 'old records', run: () => retention.run() },
      { name: 'old recordings', run: () => terminals.transcripts.prune() },
      { name: 'old audit events', run: () => audit.pruning.run() },
      { name: 'idempotency keys', run: () => deleteIdempotencyKeysBefore(core.db, core.ageTime() - DAY) },
    ],
  });
}

/** Days that each kind of record is kept. Older ones are deleted once a day, in small batches. */
export interface RetentionDays {
  readonly operations: number;
  readonly rollouts: number;
  readonly outputs: number;
  readonly drift: number;
  readonly notifications: number;
}

interface RetentionOptions extends Pick<Core, 'ageTime' | 'uow'> {
  /** Returns the current values; called in each round. */
  readonly days: () => RetentionDays;
}

/**
 * Deletes one batch of records older than `before` (Unix milliseconds). Returns the number deleted; 0 means none are
 * left.
 */
type Prune = (tx: Queryable, before: number) => Promise<number>;

interface Stock {
  readonly name: keyof RetentionDays;
  readonly event: EventType;
  readonly what: string;
  readonly prune: Prune;
}

/**
 * Limits per transaction: results deleted with their operations, agents deleted with their rollouts, bytes of outputs, drift records, and notifications.
 */
const AT_ONCE = {
  results: 20_000,
  rolloutAgents: 20_000,
  bytes: 64 * 1024 * 1024,
  drift: 1000,
  notifications: 1000,
} as const;

const STOCKS: readonly Stock[] = [
  {
    name: 'operations',
    event: 'state.operations_pruned',
    what: 'operations',
    prune: (tx, before) => deleteOperationsBefore(tx, before, AT_ONCE.results),
  },
  {
    name: 'rollouts',
    event: 'rollout.pruned',
    what: 'rollouts',
    prune: (tx, before) => deleteRolloutsBefore(tx, before, AT_ONCE.rolloutAgents),
  },
  {
    name: 'outputs',
    event: 'state.outputs_pruned',
    what: 'outputs of scripts',
    prune: (tx, before) => deleteOutputsBefore(tx, before, AT_ONCE.bytes),
  },
  {
    name: 'drift',
    event: 'drift.pruned',
    what: 'drift records',
    prune: (tx, before) => deleteDriftBefore(tx, before, AT_ONCE.drift),
  },
  {
    name: 'notifications',
    event: 'notification.pruned',
    what: 'notifications',
    prune: (tx, before) => deleteNotificationsBefore(tx, before, AT_ONCE.notifications),
  },
];

export class Retention {
  private readonly options: RetentionOptions;
  /** Cutoff in Unix milliseconds up to which everything is deleted, by stock. */
  private readonly done = new Map<Stock['name'], number>();

  constructor(options: RetentionOptions) {
    this.options = options;
  }

  /** Deletes one batch of each stock that is due; called once a minute. */
  async run(): Promise<void> {
    const { ageTime, days } = this.options;
    const kept = days();
    // Rounds down to whole days, so that each stock is pruned once a day and leaves one event instead of one a
    // minute.
    const today = Math.floor(ageTime() / DAY) * DAY;
    for (const stock of STOCKS) {
      const before = today - kept[stock.name] * DAY;
      if (before <= 0 || this.done.get(stock.name) === before) continue;
      if ((await this.prune(stock, before)) === 0) this.done.set(stock.name, before);
    }
  }

  private prune({ event, what, prune }: Stock, before: number): Promise<number> {
    return this.options.uow.write(async (tx, emit) => {
      const count = await prune(tx, before);
      if (count === 0) return 0;
      emit({
        type: event,
        actor: SYSTEM,
        target: SYSTEM,
        summary: `${count} ${what} from before ${toTimestamp(before)} were deleted`,
        metadata: { count, before: toTimestamp(before) },
      });
      return count;
    });
  }
}

/** Reads the retention of each stock from the settings. */
const retentionDays = (settings: Settings) => ({
  operations: settings['retention.operations_days'],
  rollouts: settings['retention.operations_days'],
  outputs: settings['retention.outputs_days'],
  drift: settings['drift.retention_days'],
  notifications: settings['retention.notifications_days'],
});
