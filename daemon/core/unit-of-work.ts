/** Every change of the store goes through here: the change and its audit events commit together or not at all. */
import { CompiledQuery, type Transaction } from 'kysely';
import { Fault } from '../../src/kernel/fault.js';
import type { Database, Queryable } from '../database/schema.js';
import { appendEvents, type ChainHead, type RecordedEvent, readChainHead } from './audit-log.js';
import type { Core } from './core.js';
import type { DomainEvent } from './domain-event.js';

/** Hands an event to the transaction that is open. */
export type Emit = (event: DomainEvent) => void;

export interface UnitOfWork {
  /**
   * Runs `work` in one transaction. Events given to `emit` are appended to the audit log before it commits and published
   * on the bus after. Inside, nothing but the store is awaited. Throws Fault `store_unavailable` when it cannot commit.
   */
  write<T>(work: (tx: Transaction<Database>, emit: Emit) => Promise<T>): Promise<T>;
}

/**
 * Writes to the store. Units that wait at the same time share one transaction, and so one sync of the disk, each behind a
 * savepoint of its own; nobody is told of success before that transaction has committed.
 */
interface TransactionalWriterOptions extends Pick<Core, 'clock' | 'db' | 'newId'> {
  /** Called with each event after its commit, in the order of the log, before the writer is told. Must not throw. */
  readonly publish: (event: RecordedEvent) => void;
  /** Called with the end of the log after each commit, before its writers are told. Must not throw. */
  readonly onCommitted?: (head: ChainHead) => void;
  /** Called in the transaction with the events of a unit as they were recorded; what it throws undoes the unit. */
  readonly onRecorded?: (tx: Queryable, events: readonly RecordedEvent[]) => Promise<void>;
}

/** Units of one transaction at most, and how long it goes on taking new ones. */
const BATCH_UNITS = 64;
const BATCH_MS = 10;

const SAVEPOINT = CompiledQuery.raw('savepoint unit');
const ROLL_BACK = CompiledQuery.raw('rollback to savepoint unit');
const RELEASE = CompiledQuery.raw('release savepoint unit');

interface Unit {
  /** Does the work and returns its events. */
  readonly perform: (tx: Transaction<Database>) => Promise<readonly DomainEvent[]>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Performed {
  readonly head: ChainHead;
  /** To be called once the transaction has committed. */
  readonly settle: () => void;
}

export class TransactionalWriter implements UnitOfWork {
  private readonly options: TransactionalWriterOptions;
  private readonly waiting: Unit[] = [];
  private isBusy = false;

  constructor(options: TransactionalWriterOptions) {
    this.options = options;
  }

  /** Units are done in the order of the calls. One that is called for inside another waits for that one forever. */
  write<T>(work: (tx: Transaction<Database>, emit: Emit) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.waiting.push(unitOf(work, resolve, reject));
      this.wake();
    });
  }

  /** Not at once, so that all that the event loop hands over in this round shares the commit. */
  private wake(): void {
    if (this.isBusy || this.waiting.length === 0) return;
    this.isBusy = true;
    setImmediate(() => {
      void this.commitBatch().finally(() => {
        this.isBusy = false;
        this.wake();
      });
    });
  }

  private async commitBatch(): Promise<void> {
    const batch = this.waiting.splice(0, 1);
    try {
      const performed = await this.options.db.transaction().execute((tx) => this.performBatch(tx, batch));
      const end = performed.at(-1);
      if (end !== undefined) this.options.onCommitted?.(end.head);
      for (const { settle } of performed) settle();
    } catch (error) {
      for (const unit of batch) unit.reject(error);
    }
  }

  /** Performs the batch, and meanwhile adds to it what else is waiting. */
  private async performBatch(tx: Transaction<Database>, batch: Unit[]): Promise<readonly Performed[]> {
    const { clock } = this.options;
    const end = clock.monotonic() + BATCH_MS;
    const performed: Performed[] = [];
    let head = await readChainHead(tx);
    for (const unit of batch) {
      const one = await this.perform(tx, unit, head);
      performed.push(one);
      head = one.head;
      if (batch.length < BATCH_UNITS && clock.monotonic() < end) batch.push(...this.waiting.splice(0, 1));
    }
    return performed;
  }

  /** A unit that fails leaves no trace, and the others of the batch alone. */
  private async perform(tx: Transaction<Database>, unit: Unit, head: ChainHead): Promise<Performed> {
    await tx.executeQuery(SAVEPOINT);
    try {
      const events = await unit.perform(tx);
      const appended = await appendEvents(tx, events, { ...this.options, head });
      if (appended.recorded.length > 0) await this.options.onRecorded?.(tx, appended.recorded);
      await tx.executeQuery(RELEASE);
      return { head: appended.head, settle: () => this.succeed(unit, appended.recorded) };
    } catch (error) {
      await rollBack(tx, error);
      return { head, settle: () => unit.reject(error) };
    }
  }

  private succeed(unit: Unit, events: readonly RecordedEvent[]): void {
    for (const event of events) this.options.publish(event);
    unit.resolve();
  }
}

/** After some errors, such as a full disk, SQLite has rolled back the whole transaction, which then fails as a whole. */
async function rollBack(tx: Transaction<Database>, error: unknown): Promise<void> {
  try {
    await tx.executeQuery(ROLL_BACK);
    await tx.executeQuery(RELEASE);
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
