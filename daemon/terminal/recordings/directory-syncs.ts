/** Makes the names of directories durable for all who ask at the same time: a hundred new files of one need no hundred syncs. */
import { syncDirectory } from './sync-directory.js';

export class DirectorySyncs {
  private readonly running = new Map<string, Promise<void>>();
  /** Those that begin when the running ones are over. */
  private readonly next = new Map<string, Promise<void>>();

  /** Names that are there by now are durable when it resolves. */
  sync(path: string): Promise<void> {
    const before = this.running.get(path);
    if (before === undefined) return this.start(path);
    const waiting = this.next.get(path);
    if (waiting !== undefined) return waiting;
    // A sync that has begun may not see a name that is newer.
    const next = before.then(
      () => this.start(path),
      () => this.start(path),
    );
    this.next.set(path, next);
    return next;
  }

  private start(path: string): Promise<void> {
    this.next.delete(path);
    const sync = syncDirectory(path).finally(() => {
      if (this.running.get(path) === sync) this.running.delete(path);
    });
    this.running.set(path, sync);
    return sync;
  }
}
