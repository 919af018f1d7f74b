/** The ticks of a rollout, a second apart, at which its work on agents that cannot take it yet is repeated. */

/** Number of ticks for which work is repeated, by the code of the fault that keeps an agent from it. */
const RETRIES: Readonly<Record<string, number>> = {
  agent_not_connected: 60,
  operation_in_progress: 600,
  // An apply has taken the agent.
  cancelled: 600,
};

/** Returns the number of ticks for which work is repeated after a fault of this code; 0 for other faults. */
export const retriesAfter = (code: string | undefined): number => RETRIES[code ?? ''] ?? 0;

export class RolloutTicks {
  private readonly shutdown: AbortSignal;
  private readonly waiters = new Set<() => void>();

  constructor(shutdown: AbortSignal) {
    this.shutdown = shutdown;
  }

  tick(): void {
    for (const resolve of [...this.waiters]) resolve();
  }

  /** Resolves at the next tick, or when the orchestrator stops. */
  next(): Promise<void> {
    const { shutdown, waiters } = this;
    return new Promise((resolve) => {
      const done = () => {
        shutdown.removeEventListener('abort', done);
        waiters.delete(done);
        resolve();
      };
      waiters.add(done);
      shutdown.addEventListener('abort', done);
      if (shutdown.aborted) done();
    });
  }
}
