/** Deletes operations, outputs, drift records and notifications that are older than they are kept: once a day, and little at a time. */
import { toTimestamp } from '../src/kernel/clock.js';
import type { Core } from './core/core.js';
import { type EventType, SYSTEM } from './core/domain-event.js';
import type { Queryable } from './database/schema.js';
import { deleteDriftBefore } from './engine/drift-store.js';
import { deleteOperationsBefore } from './engine/operation-store.js';
import { deleteOutputsBefore } from './engine/output-store.js';
import { deleteNotificationsBefore } from './notify/notification-store.js';

export interface RetentionDays {
  readonly operations: number;
  readonly outputs: number;
  readonly drift: number;
  readonly notifications: number;
}

export interface RetentionOptions extends Pick<Core, 'ageTime' | 'uow'> {
  /** As they are now; asked each time. */
  readonly days: () => RetentionDays;
}

/** Returns how many were deleted: none only when nothing is left to delete. */
type Prune = (tx: Queryable, before: number) => Promise<number>;

interface Stock {
  readonly name: keyof RetentionDays;
  readonly event: EventType;
  readonly what: string;
  readonly prune: Prune;
}

const DAY = 86_400_000;

/** Results that go with the operations of one transaction, bytes of outputs, drift records, and notifications. */
const AT_ONCE = { results: 20_000, bytes: 64 * 1024 * 1024, drift: 1000, notifications: 1000 } as const;

const STOCKS: readonly Stock[] = [
  {
    name: 'operations',
    event: 'state.operations_pruned',
    what: 'operations',
    prune: (tx, before) => deleteOperationsBefore(tx, before, AT_ONCE.results),
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
  /** Up to which time everything old is deleted, by stock. */
  private readonly done = new Map<Stock['name'], number>();

  constructor(options: RetentionOptions) {
    this.options = options;
  }

  /** One step of what is due; to be called each minute. */
  async run(): Promise<void> {
    const { ageTime, days } = this.options;
    const kept = days();
    // Whole days, so that what grows old all the time goes at once and leaves one event, not one each minute.
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
