/** The applies of a cancelled rollout that are cancelled with it. */
import { isFault, messageOf } from '../../../src/kernel/fault.js';
import type { RequestContext } from '../../core/domain-event.js';
import type { RunTools } from './run-tools.js';

export class RolloutCancels {
  private readonly tools: Pick<RunTools, 'applies' | 'logger'>;
  /** Applies whose cancellation could not be stored yet. */
  private readonly open = new Map<string, RequestContext>();

  constructor(tools: Pick<RunTools, 'applies' | 'logger'>) {
    this.tools = tools;
  }

  /** Cancels an apply at the next tick. */
  add(operationId: string, context: RequestContext): void {
    this.open.set(operationId, context);
  }

  /** Cancels an apply that is in flight, and tries again while the store is away. Returns false for one that has ended. */
  async cancel(operationId: string, context: RequestContext): Promise<boolean> {
    try {
      await this.tools.applies.cancel(operationId, context);
      this.open.delete(operationId);
      return true;
    } catch (error) {
      const isAway = isFault(error, 'store_unavailable');
      if (!isAway && !isFault(error, 'operation_finished')) throw error;
      if (isAway) this.open.set(operationId, context);
      else this.open.delete(operationId);
      return isAway;
    }
  }

  tick(): void {
    for (const [operationId, context] of this.open) {
      this.cancel(operationId, context).catch((error: unknown) =>
        this.tools.logger.error('an apply could not be cancelled', {
          operation_id: operationId,
          reason: messageOf(error),
        }),
      );
    }
  }
}
