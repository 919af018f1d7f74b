/** Leases: one run at a time per agent, and a limit for all agents. An apply cancels plans and drift checks of its agent. */
import type { Clock } from '../../../src/kernel/clock.js';
import { Fault, isFault } from '../../../src/kernel/fault.js';
import type { NodeId } from '../../../src/kernel/ids.js';
import type { EngineLimits } from '../engine-limits.js';

/** Held until released; a second release does nothing. */
interface Lease {
  release(): void;
}

export interface ApplyLease extends Lease {
  /** Cancels a running plan or drift check, and rejects those that wait. */
  claim(): void;
}

interface Observer {
  readonly kind: 'plan' | 'drift' | 'verify';
  /** Called when an apply takes the agent. */
  cancel(): void;
}

interface Waiter {
  readonly observer: Observer;
  /** Monotonic milliseconds. */
  readonly deadline: number;
  admit(): void;
  refuse(fault: Fault): void;
}

interface AgentLeases {
  /** ID of the apply in progress, or null. */
  apply: string | null;
  observer: Observer | null;
  readonly queue: Waiter[];
}

export class Leases {
  private readonly byAgent = new Map<NodeId, AgentLeases>();
  private held = 0;
  private slotWaiters: (() => void)[] = [];
  private readonly clock: Clock;
  private readonly limits: EngineLimits;

  constructor(clock: Clock, limits: EngineLimits) {
    this.clock = clock;
    this.limits = limits;
  }

  /** Returns the ID of the apply in progress on an agent, or null. */
  applying(nodeId: NodeId): string | null {
    return this.byAgent.get(nodeId)?.apply ?? null;
  }

  /** Returns true while an apply, a plan or a drift check of the agent is in progress. */
  isBusy(nodeId: NodeId): boolean {
    const leases = this.byAgent.get(nodeId);
    return leases !== undefined && (leases.apply !== null || leases.observer !== null);
  }

  /**
   * Locks the agent for an apply. Throws `operation_in_progress` if it has one already, or too many runs are in progress. One
   * that `yields` also does so if a plan or drift check is in progress.
   */
  takeForApply(nodeId: NodeId, operationId: string, { yields = false } = {}): ApplyLease {
    this.rejectIfBusy(nodeId);
    if (yields && this.isBusy(nodeId)) throw observed(nodeId);
    this.rejectIfFull();
    return this.hold(nodeId, operationId);
  }

  /** Takes the agent for an operation that is already in progress, regardless of the limit. */
  restore(nodeId: NodeId, operationId: string): ApplyLease {
    return this.hold(nodeId, operationId);
  }

  /**
   * Takes the agent for a plan or drift check, and waits a limited time for another one to end. Throws `operation_in_progress`
   * when an apply or too many runs are in progress, when too many checks wait, or when the wait times out.
   */
  async takeForObserver(nodeId: NodeId, observer: Observer): Promise<Lease> {
    this.rejectIfBusy(nodeId);
    this.rejectIfFull();
    const leases = this.leasesOf(nodeId);
    if (leases.observer === null) leases.observer = observer;
    else await this.wait(nodeId, leases, observer);
    this.held += 1;
    return this.once(() => {
      this.leave();
      this.admitNext(nodeId, leases);
    });
  }

  /** Runs `start`, and repeats it when a run ends while others use every slot. Gives up once the signal is aborted. */
  async whenThereIsRoom<T>(start: () => Promise<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      const room = this.whenSlotFree();
      try {
        return await start();
      } catch (error) {
        if (!isFault(error, 'operation_in_progress') || error.data?.limit === undefined || signal.aborted) throw error;
      }
      await room;
    }
  }

  /** Resolves when the next run ends, or at once if the limit is not reached. */
  private whenSlotFree(): Promise<void> {
    if (this.held < this.limits.operations) return Promise.resolve();
    return new Promise((resolve) => this.slotWaiters.push(resolve));
  }

  /** Rejects plans and drift checks whose wait has timed out. */
  tick(): void {
    const now = this.clock.monotonic();
    for (const [nodeId, { queue }] of this.byAgent) {
      while (queue[0] !== undefined && queue[0].deadline <= now) queue.shift()?.refuse(observed(nodeId));
    }
  }

  private hold(nodeId: NodeId, operationId: string): ApplyLease {
    const leases = this.leasesOf(nodeId);
    leases.apply = operationId;
    this.held += 1;
    const lease = this.once(() => {
      if (leases.apply === operationId) leases.apply = null;
      this.leave();
      this.dropIfIdle(nodeId, leases);
    });
    const claim = () => {
      for (const waiter of leases.queue.splice(0)) waiter.refuse(inProgress(nodeId, operationId));
      leases.observer?.cancel();
    };
    return { ...lease, claim };
  }

  private leave(): void {
    this.held -= 1;
    for (const tell of this.slotWaiters.splice(0)) tell();
  }

  private wait(nodeId: NodeId, { queue }: AgentLeases, observer: Observer): Promise<void> {
    if (queue.length >= this.limits.waiting) throw observed(nodeId);
    const deadline = this.clock.monotonic() + this.limits.turn;
    return new Promise((admit, refuse) => queue.push({ observer, deadline, admit, refuse }));
  }

  private admitNext(nodeId: NodeId, leases: AgentLeases): void {
    const next = leases.queue.shift();
    leases.observer = next?.observer ?? null;
    next?.admit();
    this.dropIfIdle(nodeId, leases);
  }

  private leasesOf(nodeId: NodeId): AgentLeases {
    const leases = this.byAgent.get(nodeId) ?? { apply: null, observer: null, queue: [] };
    this.byAgent.set(nodeId, leases);
    return leases;
  }

  private dropIfIdle(nodeId: NodeId, { apply, observer, queue }: AgentLeases): void {
    if (apply === null && observer === null && queue.length === 0) this.byAgent.delete(nodeId);
  }

  private once(release: () => void): Lease {
    let released = false;
    return {
      release: () => {
        if (released) return;
        released = true;
        release();
      },
    };
  }

  private rejectIfBusy(nodeId: NodeId): void {
    const apply = this.applying(nodeId);
    if (apply !== null) throw inProgress(nodeId, apply);
  }

  private rejectIfFull(): void {
    const { operations } = this.limits;
    if (this.held < operations) return;
    throw new Fault('operation_in_progress', `${operations} operations are in progress, which is the most at a time`, {
      hint: 'wait for some of them to end and try again',
      data: { limit: operations },
    });
  }
}

const inProgress = (nodeId: NodeId, operationId: string): Fault =>
  new Fault('operation_in_progress', `operation ${operationId} is in progress on agent ${nodeId}`, {
    hint: `wait for it, or cancel it: orch ops cancel ${operationId}`,
    data: { operation_id: operationId },
  });

const observed = (nodeId: NodeId): Fault =>
  new Fault(
    'operation_in_progress',
    `another plan, drift check or run of health checks of agent ${nodeId} is still in progress`,
    {
      hint: 'wait for it to end and try again',
    },
  );
