/** Runs a plan or a drift check under the lease of its agent. */
import { Fault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { abortFault } from './abort-fault.js';
import type { Leases } from './leases.js';

export interface ObserverOptions {
  readonly kind: 'plan' | 'drift';
  readonly nodeId: NodeId;
  readonly leases: Leases;
  /** Aborted when whoever asked for it goes away. */
  readonly signal: AbortSignal;
}

/**
 * Calls `work` when it is its turn. Its signal is aborted with a Fault: `cancelled` when an apply takes the agent, that of
 * `signal` when that is aborted. Throws `operation_in_progress` when it is not its turn in time.
 */
export async function underLease<T>(
  { kind, nodeId, leases, signal }: ObserverOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  const abort = () => own.abort(abortFault(signal));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  const cancel = () =>
    own.abort(
      new Fault('cancelled', `an apply has taken agent ${nodeId}`, { hint: 'try again when the apply has ended' }),
    );
  try {
    const lease = await leases.takeForObserver(nodeId, { kind, cancel });
    try {
      return await work(own.signal);
    } finally {
      lease.release();
    }
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
