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
      if (types === null || types.has(event.type)) this.deliver(subscriber, event);
    }
  }

  private deliver(subscriber: Subscriber, event: RecordedEvent): void {
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

/** Wakes one waiting loop. A signal set while nothing waits is kept for the next wait. */
export class WakeSignal {
  private isSet = false;
  private wakeWaiter: (() => void) | null = null;

  set(): void {
    this.isSet = true;
    this.wakeWaiter?.();
  }

  /** Resolves when the signal is set, at once when it was set since the last wait, or after `ms` milliseconds. */
  async wait(ms: number): Promise<void> {
    if (!this.isSet) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.wakeWaiter = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.wakeWaiter = null;
    }
    this.isSet = false;
  }
}
