/** What goes on beside its caller and has to be done before the store may close. */
import { messageOf } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';

export class BackgroundWork {
  private readonly logger: Logger;
  private readonly running = new Set<Promise<void>>();

  constructor(logger: Logger) {
    this.logger = logger;
  }

  /** Work that nobody waits for: what goes wrong is logged. */
  start(work: Promise<void>): void {
    const failed = (error: unknown) =>
      this.logger.error('a change of an agent was not recorded', { reason: messageOf(error) });
    void this.track(work.catch(failed));
  }

  /** Work that its caller waits for. */
  track(work: Promise<void>): Promise<void> {
    this.running.add(work);
    const forget = () => this.running.delete(work);
    work.then(forget, forget);
    return work;
  }

  /** Settles when nothing is going on any more. */
  async settled(): Promise<void> {
    while (this.running.size > 0) await Promise.allSettled(this.running);
  }
}
