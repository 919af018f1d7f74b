/** Regular small jobs, one after the other; one that fails is logged and tried again at the next round. */
import { messageOf } from '../src/kernel/fault.js';
import type { Logger } from '../src/kernel/logger.js';
import type { Service } from '../src/kernel/service.js';

export interface Job {
  readonly name: string;
  run(): Promise<unknown>;
}

export class Housekeeping implements Service {
  readonly name = 'housekeeping';
  private timer: NodeJS.Timeout | undefined;
  private round: Promise<void> = Promise.resolve();
  private readonly options: { readonly jobs: readonly Job[]; readonly everyMs: number; readonly logger: Logger };

  constructor(options: { readonly jobs: readonly Job[]; readonly everyMs: number; readonly logger: Logger }) {
    this.options = options;
  }

  /** Begins with a round, because an orchestrator may run for less time than lies between two. */
  async start(): Promise<void> {
    this.round = this.runAll();
    this.timer = setInterval(() => {
      this.round = this.round.then(() => this.runAll());
    }, this.options.everyMs);
  }

  /** Waits for the round that is under way. */
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
