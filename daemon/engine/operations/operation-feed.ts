/** Wakes the followers of an operation, which read from the store: a slow follower blocks nothing. */

/** Event that a follower of an operation receives. */
export type News =
  /** Results or an end are in the store. */
  | 'changed'
  /** The agent has been silent for too long. */
  | 'silent'
  /** The orchestrator stops. */
  | 'closed';

interface Subscription {
  /** Returns unread news, or waits for the next; returns `closed` when the signal is aborted. */
  next(signal: AbortSignal): Promise<News>;
  close(): void;
}

export class OperationFeed {
  private readonly subscribers = new Map<string, Set<(news: News) => void>>();

  subscribe(operationId: string): Subscription {
    let unread: News | null = null;
    let wake: ((news: News) => void) | null = null;
    const tell = (news: News) => {
      if (wake !== null) wake(news);
      else if (unread === null || news !== 'silent') unread = news;
    };
    this.add(operationId, tell);
    return {
      next: (signal) =>
        new Promise((resolve) => {
          const finish = (news: News) => {
            wake = null;
            unread = null;
            signal.removeEventListener('abort', abort);
            resolve(news);
          };
          const abort = () => finish('closed');
          if (signal.aborted) return finish('closed');
          if (unread !== null) return finish(unread);
          signal.addEventListener('abort', abort, { once: true });
          wake = finish;
        }),
      close: () => this.drop(operationId, tell),
    };
  }

  publish(operationId: string, news: News): void {
    for (const tell of [...(this.subscribers.get(operationId) ?? [])]) tell(news);
  }

  close(): void {
    for (const id of [...this.subscribers.keys()]) this.publish(id, 'closed');
  }

  private add(operationId: string, tell: (news: News) => void): void {
    const known = this.subscribers.get(operationId) ?? new Set();
    this.subscribers.set(operationId, known.add(tell));
  }

  private drop(operationId: string, tell: (news: News) => void): void {
    const known = this.subscribers.get(operationId);
    known?.delete(tell);
    if (known?.size === 0) this.subscribers.delete(operationId);
  }
}
