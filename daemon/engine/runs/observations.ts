/** Plans and drift checks in progress: sends them, routes the agents' reports, and times out silent agents. */
import { FAULTS } from '../../../src/contract/faults.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { NodeId } from '../../../src/kernel/ids.js';
import type { CheckReport } from '../../../src/resources/checks/check.js';
import type { ResourceResult } from '../../../src/resources/result.js';
import { type ItemResult, isUnchanged, itemsOf } from '../../../src/resources/run-results.js';
import type { AgentMessageOf, OrchestratorMessage } from '../../../src/wire/messages.js';
import { cutRun, type RunContent } from '../../../src/wire/parts.js';
import type { Core } from '../../core/core.js';
import type { AgentLink, EngineMessage } from '../../fleet/connection-registry.js';
import type { DriftResult } from '../drift/drift-results.js';
import type { EngineLimits } from '../engine-limits.js';
import type { Leases } from './leases.js';
import { RunItems } from './run-content.js';

export type RunMessage = Exclude<EngineMessage, { type: 'inventory' }>;

interface Entry {
  readonly observation: Observation;
  /** Start in monotonic milliseconds. */
  readonly since: number;
  /** Time of the agent's last message about the run, in monotonic milliseconds. */
  lastMessageAt: number;
}

interface ObservationsOptions extends Pick<Core, 'clock'> {
  readonly link: AgentLink;
  readonly limits: EngineLimits;
}

export class Observations {
  private readonly entries = new Map<string, Entry>();
  private readonly options: ObservationsOptions;

  constructor(options: ObservationsOptions) {
    this.options = options;
  }

  /**
   * Runs a plan or drift check. Rejects with `agent_not_connected` when the agent is not connected or the connection is lost, and
   * with `agent_timeout` after silence. When `signal` is aborted, rejects with the Fault of its reason, or else `cancelled`.
   */
  async run(observation: Observation, signal: AbortSignal): Promise<Observed> {
    const abort = () => this.drop(observation, abortFault(signal));
    if (signal.aborted) throw abortFault(signal);
    signal.addEventListener('abort', abort, { once: true });
    const since = this.options.clock.monotonic();
    this.entries.set(observation.runId, { observation, since, lastMessageAt: since });
    try {
      if (!this.options.link.send(observation.nodeId, observation.messages())) throw connectionLost(observation);
      return await observation.outcome;
    } finally {
      signal.removeEventListener('abort', abort);
      this.entries.delete(observation.runId);
    }
  }

  /** Handles a message of a known run; returns false for any other. Throws `protocol_violation`. */
  receive(nodeId: NodeId, message: RunMessage): boolean {
    const entry = this.entries.get(message.run_id);
    if (entry === undefined) return false;
    const { observation } = entry;
    if (observation.nodeId !== nodeId) {
      throw new Fault('protocol_violation', `the agent speaks of run ${message.run_id}, which is another agent's`);
    }
    entry.lastMessageAt = this.options.clock.monotonic();
    if (message.type === 'run_results') observation.take(message);
    if (message.type === 'run_finished') observation.finish(message, this.options.clock.now());
    return true;
  }

  disconnected(nodeId: NodeId): void {
    for (const { observation } of this.entries.values()) {
      if (observation.nodeId === nodeId) observation.fail(connectionLost(observation));
    }
  }

  /** Ends the runs of agents that have been silent for too long. */
  tick(): void {
    const { clock, limits } = this.options;
    const now = clock.monotonic();
    for (const { observation, since, lastMessageAt: heard } of this.entries.values()) {
      if (now - heard >= limits.silence) this.drop(observation, silent(observation, limits.silence));
      else if (now - since >= observation.timeoutMs) this.drop(observation, endless(observation));
    }
  }

  /** Ends all runs with `shutting_down`. */
  stop(): void {
    for (const { observation } of this.entries.values()) {
      this.drop(observation, new Fault('shutting_down', 'the orchestrator stops', { hint: 'try again in a moment' }));
    }
  }

  private drop(observation: Observation, fault: Fault): void {
    this.options.link.send(observation.nodeId, [{ type: 'run_cancel', run_id: observation.runId }]);
    observation.fail(fault);
  }
}

const NOUN = { plan: 'plan', drift: 'drift check', verify: 'health checks' } as const;

const connectionLost = ({ mode, nodeId }: Observation): Fault =>
  new Fault('agent_not_connected', `the connection to agent ${nodeId} was lost during the ${NOUN[mode]}`, {
    hint: 'try again when the agent is back',
  });

const silent = ({ mode, nodeId }: Observation, silence: number): Fault =>
  new Fault('agent_timeout', `agent ${nodeId} said nothing about the ${NOUN[mode]} for ${silence / 1000} s`, {
    hint: 'look at the log of the agent and try again',
  });

const endless = ({ mode, nodeId, timeoutMs }: Observation): Fault =>
  new Fault('agent_timeout', `agent ${nodeId} did not end the ${NOUN[mode]} in ${Math.ceil(timeoutMs / 1000)} s`, {
    hint: 'look at the log of the agent and try again',
  });

/** Result of a finished plan or drift check, as reported by the agent. */
export interface Observed {
  /** Results in the order of the run. */
  readonly results: readonly DriftResult[];
  readonly end: AgentMessageOf<'run_finished'>['end'];
  /** SHA-256 of what a plan observed; null if the agent sent none. */
  readonly observed: string | null;
  readonly error: AgentMessageOf<'run_finished'>['error'];
  /** Reports about the health checks of a verification. */
  readonly checks: readonly CheckReport[];
}

interface ObservationOptions {
  readonly runId: string;
  readonly nodeId: NodeId;
  readonly mode: 'plan' | 'drift' | 'verify';
  readonly content: RunContent;
  /** Characters of the content as JSON, or more; null when unknown. */
  readonly size: number | null;
  /** Called with each result as it arrives. */
  readonly onResult: (result: ResourceResult) => void;
  /** Maximum milliseconds, however much the agent says [default: without limit]. */
  readonly timeoutMs?: number;
}

export class Observation {
  readonly runId: string;
  readonly nodeId: NodeId;
  readonly mode: 'plan' | 'drift' | 'verify';
  readonly timeoutMs: number;
  /** Rejects with the Fault given to `fail`. */
  readonly outcome: Promise<Observed>;
  private readonly content: RunContent;
  private readonly size: number | null;
  private readonly items: RunItems;
  private readonly onResult: (result: ResourceResult) => void;
  private readonly received: ItemResult[] = [];
  private resolve: (observed: Observed) => void = () => undefined;
  private reject: (fault: Fault) => void = () => undefined;

  constructor(options: ObservationOptions) {
    this.runId = options.runId;
    this.nodeId = options.nodeId;
    this.mode = options.mode;
    this.content = options.content;
    this.size = options.size;
    this.items = new RunItems(options.content);
    this.onResult = options.onResult;
    this.timeoutMs = options.timeoutMs ?? Number.POSITIVE_INFINITY;
    this.outcome = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // Avoids an unhandled rejection when no caller awaits the outcome.
    this.outcome.catch(() => undefined);
  }

  /** Returns the messages that start the run. */
  messages(): readonly OrchestratorMessage[] {
    const head = { run_id: this.runId, mode: this.mode, epoch: 0, generation: 0, short_results: true };
    return cutRun(head, this.content, { size: this.size });
  }

  /** Stores results. Throws `protocol_violation` for results that are out of sequence or belong to another run. */
  take({ from, items }: AgentMessageOf<'run_results'>): void {
    if (from !== this.received.length) {
      throw violation(this.runId, `results from ${from} when ${this.received.length} were next`);
    }
    const { resources } = this.content;
    const checked = this.items
      .check(items)
      .flatMap((entry): readonly ItemResult[] => (isUnchanged(entry) ? itemsOf(entry, resources) : [entry]));
    this.items.note(checked.map((item) => item.index));
    this.received.push(...checked);
    for (const { result } of checked) this.onResult(result);
  }

  /**
   * Resolves the outcome. Throws `protocol_violation` when the number of results is wrong.
   * @param now time of arrival in Unix milliseconds
   */
  finish(
    { end, results, observed, error, checks, traces = [], clock = null }: AgentMessageOf<'run_finished'>,
    now: number,
  ): void {
    if (results !== this.received.length) {
      throw violation(this.runId, `${results} results in all after ${this.received.length}`);
    }
    const complete = this.received.length === this.items.count;
    if (end === 'succeeded' && !complete) throw violation(this.runId, 'success without all results');
    const ordered = [...this.received].sort((a, b) => a.index - b.index);
    // The agent's clock may be wrong: its times count from its own present.
    const ahead = clock === null ? 0 : now - clock;
    const known = new Map(traces?.map((trace) => [trace.index, trace]));
    const traced = ({ index, result }: ItemResult): DriftResult => {
      const trace = this.mode === 'drift' && result.status === 'pending' ? known.get(index) : undefined;
      if (trace === undefined) return result;
      const changedAt = trace.changed_at === null ? null : trace.changed_at + ahead;
      return { ...result, trace: { observed: trace.observed, changedAt } };
    };
    this.resolve({ results: ordered.map(traced), end, observed, error, checks: checks ?? [] });
  }

  fail(fault: Fault): void {
    this.reject(fault);
  }
}

const violation = (runId: string, what: string): Fault =>
  new Fault('protocol_violation', `the agent reported ${what} for run ${runId}`);

/** Options of a plan or drift check that runs under the lease of its agent. */
interface ObserverOptions {
  readonly kind: 'plan' | 'drift' | 'verify';
  readonly nodeId: NodeId;
  readonly leases: Leases;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Calls `work` once it holds the lease, and releases the lease afterwards. The signal of `work` is aborted with a Fault:
 * `cancelled` when an apply takes the agent, or the fault of `signal`. Throws `operation_in_progress` when the wait for the lease
 * times out.
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
      new Fault('cancelled', `an apply has taken agent ${nodeId}`, {
        hint: 'try again when the apply has ended',
        data: { retry_after: FAULTS.operation_in_progress.retryAfter },
      }),
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

/** Returns the Fault that the signal was aborted with, or `cancelled` when the reason is not a Fault. */
export function abortFault({ reason }: AbortSignal): Fault {
  if (reason instanceof Fault) return reason;
  return new Fault('cancelled', 'the caller went away', { cause: reason });
}
