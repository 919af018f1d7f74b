/** Unit of work: every change of the store and its audit events commit together or not at all. */
import type { Transaction } from 'kysely';
import { Fault } from '../../src/kernel/fault.js';
import type { Database, Queryable } from '../database/schema.js';
import { runDirectly, storeDriverOf } from '../database/store-driver.js';
import { type AppendOptions, appendEvents, type ChainHead, type RecordedEvent, readChainHead } from './audit-log.js';
import type { DomainEvent } from './domain-event.js';

/** Adds an event to the open transaction. */
export type Emit = (event: DomainEvent) => void;

export interface UnitOfWork {
  /**
   * Runs `work` in one transaction and returns its result after the commit. Events given to `emit` are appended to
   * the audit log before the commit, and published on the bus after it. `work` may await nothing but the store.
   * Throws `store_unavailable` when the transaction cannot commit.
   */
  write<T>(work: (tx: Transaction<Database>, emit: Emit) => Promise<T>): Promise<T>;
}

interface TransactionalWriterOptions extends Pick<AppendOptions, 'clock' | 'newId'> {
  readonly db: Queryable;
  /** Called with each event after its commit, in log order, before the caller's promise resolves. Must not throw. */
  readonly publish: (event: RecordedEvent) => void;
  /** Called with the head of the log after each commit, before the callers' promises resolve. Must not throw. */
  readonly onCommitted?: (head: ChainHead) => void;
  /** Called in the transaction with a unit's recorded events. An exception rolls back the unit. */
  readonly onRecorded?: (tx: Queryable, events: readonly RecordedEvent[]) => Promise<void>;
}

/** Maximum units per transaction, and milliseconds for which a transaction takes on new ones. */
const BATCH_UNITS = 64;
const BATCH_MS = 10;

const SAVEPOINT = 'savepoint unit';
const ROLL_BACK = 'rollback to savepoint unit';
const RELEASE = 'release savepoint unit';

interface Unit {
  /** Runs the work and returns its events. */
  readonly perform: (tx: Transaction<Database>) => Promise<readonly DomainEvent[]>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Performed {
  readonly head: ChainHead;
  readonly events: readonly RecordedEvent[];
  /** Settles the caller's promise; called once the transaction has committed. */
  readonly settle: () => void;
}

/**
 * Writes to the store, as its only writer. Units waiting at the same time share one transaction, and so one fsync. No caller learns
 * of success before that transaction has committed.
 */
export class TransactionalWriter implements UnitOfWork {
  private readonly options: TransactionalWriterOptions;
  private readonly waiting: Unit[] = [];
  private isBusy = false;
  /** Head of the log after the last commit; null when the store has to be asked. */
  private head: ChainHead | null = null;

  constructor(options: TransactionalWriterOptions) {
    this.options = options;
  }

  /** Runs units in call order. A unit that awaits another `write` inside its own work deadlocks. */
  write<T>(work: (tx: Transaction<Database>, emit: Emit) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.waiting.push(unitOf(work, resolve, reject));
      this.wake();
    });
  }

  /** Defers to the next turn of the event loop, so that all units queued in this turn share the commit. */
  private wake(): void {
    if (this.isBusy || this.waiting.length === 0) return;
    this.isBusy = true;
    setImmediate(() => {
      let isOver = false;
      const over = () => {
        if (isOver) return;
        isOver = true;
        this.isBusy = false;
        this.wake();
      };
      void this.commitBatch(over).finally(over);
    });
  }

  /** Commits waiting units. Calls `onDoubt` when it is long unknown whether they were committed, so that later ones can be refused. */
  private async commitBatch(onDoubt: () => void): Promise<void> {
    const batch = this.waiting.splice(0, 1);
    const known = this.head;
    this.head = null;
    try {
      const performed = await storeDriverOf(this.options.db).transact((tx) => this.performBatch(tx, batch, known), {
        lastEventIdOf: lastEventId,
        onDoubt,
      });
      const end = performed.at(-1);
      if (end !== undefined) {
        this.head = end.head;
        this.options.onCommitted?.(end.head);
      }
      for (const { settle } of performed) settle();
    } catch (error) {
      for (const unit of batch) unit.reject(error);
    }
  }

  /** Runs the batch, adding units that arrive meanwhile. */
  private async performBatch(
    tx: Transaction<Database>,
    batch: Unit[],
    known: ChainHead | null,
  ): Promise<readonly Performed[]> {
    const { clock } = this.options;
    const end = clock.monotonic() + BATCH_MS;
    const performed: Performed[] = [];
    let head = known ?? (await readChainHead(tx));
    for (const unit of batch) {
      // A failure of the first unit undoes the whole transaction, so it needs no savepoint.
      const one = unit === batch[0] ? await this.perform(tx, unit, head) : await this.performApart(tx, unit, head);
      performed.push(one);
      head = one.head;
      if (batch.length < BATCH_UNITS && clock.monotonic() < end) batch.push(...this.waiting.splice(0, 1));
    }
    return performed;
  }

  private async perform(tx: Transaction<Database>, unit: Unit, head: ChainHead): Promise<Performed> {
    const events = await unit.perform(tx);
    const appended = await appendEvents(tx, events, { ...this.options, head });
    if (appended.recorded.length > 0) await this.options.onRecorded?.(tx, appended.recorded);
    return { head: appended.head, events: appended.recorded, settle: () => this.succeed(unit, appended.recorded) };
  }

  /** Runs one unit behind others. A failed unit leaves no trace, and does not affect the others of the batch. */
  private async performApart(tx: Transaction<Database>, unit: Unit, head: ChainHead): Promise<Performed> {
    await runDirectly(tx, SAVEPOINT, []);
    try {
      const performed = await this.perform(tx, unit, head);
      await runDirectly(tx, RELEASE, []);
      return performed;
    } catch (error) {
      await rollBack(tx, error);
      return { head, events: [], settle: () => unit.reject(error) };
    }
  }

  private succeed(unit: Unit, events: readonly RecordedEvent[]): void {
    for (const event of events) this.options.publish(event);
    unit.resolve();
  }
}

const lastEventId = (performed: readonly Performed[]): string | null =>
  performed.flatMap(({ events }) => events).at(-1)?.id ?? null;

/**
 * Rolls back to the savepoint. After some errors, such as a full disk, the store has rolled back the whole transaction;
 * then it fails as a whole.
 */
async function rollBack(tx: Transaction<Database>, error: unknown): Promise<void> {
  try {
    await runDirectly(tx, ROLL_BACK, []);
    await runDirectly(tx, RELEASE, []);
  } catch {
    throw error instanceof Fault && error.code === 'store_unavailable'
      ? error
      : new Fault('store_unavailable', 'the store gave up a transaction, nothing was written', { cause: error });
  }
}

function unitOf<T>(
  work: (tx: Transaction<Database>, emit: Emit) => Promise<T>,
  resolve: (value: T) => void,
  reject: (error: unknown) => void,
): Unit {
  const results: T[] = [];
  return {
    perform: async (tx) => {
      const events: DomainEvent[] = [];
      results.push(await work(tx, (event) => events.push(event)));
      return events;
    },
    resolve: () => {
      for (const result of results) resolve(result);
    },
    reject,
  };
}
