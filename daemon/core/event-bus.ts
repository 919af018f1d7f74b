/** Publishes committed events to their subscribers. */
import { messageOf } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { RecordedEvent } from './audit-log.js';
import type { EventType } from './domain-event.js';

/** Receives an event. An exception or rejection is logged and goes no further. */
type Subscriber = (event: RecordedEvent) => void | Promise<void>;

interface Subscription {
  readonly types: ReadonlySet<EventType> | null;
  readonly subscriber: Subscriber;
}

export class EventBus {
  private readonly subscriptions = new Set<Subscription>();
  private readonly logger: Logger;

  constructor(logger: Logger) {
    this.logger = logger;
  }

  /** Calls `subscriber` with every event of these types, in log order. Returns a function that unsubscribes. */
  subscribe(types: readonly EventType[] | 'all', subscriber: Subscriber): () => void {
    const subscription = { types: types === 'all' ? null : new Set(types), subscriber };
    this.subscriptions.add(subscription);
    return () => {
      this.subscriptions.delete(subscription);
    };
  }

  publish(event: RecordedEvent): void {
    for (const { types, subscriber } of [...this.subscriptions]) {
      if (types === null || types.has(event.type)) this.tell(subscriber, event);
    }
  }

  private tell(subscriber: Subscriber, event: RecordedEvent): void {
    const failed = (error: unknown) =>
      this.logger.error('a subscriber failed', { event: event.id, type: event.type, reason: messageOf(error), error });
    try {
      const done = subscriber(event);
      if (done instanceof Promise) done.catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}

/** Wakes one waiting loop. A ring with no waiter is kept for the next wait. */
export class Doorbell {
  private rung = false;
  private answer: (() => void) | null = null;

  ring(): void {
    this.rung = true;
    this.answer?.();
  }

  /** Resolves on a ring, at once when one came since the last wait, or after `ms` milliseconds. */
  async wait(ms: number): Promise<void> {
    if (!this.rung) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.answer = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.answer = null;
    }
    this.rung = false;
  }
}
