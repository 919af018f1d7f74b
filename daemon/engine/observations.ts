/** The plans and drift checks that are under way: sends them, routes what agents say about them, ends the silent ones. */
import { Fault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { ResourceResult } from '../../src/resources/result.js';
import type { AgentMessageOf, OrchestratorMessage, RunItem } from '../../src/wire/messages.js';
import { cutRun, type RunContent } from '../../src/wire/parts.js';
import type { Core } from '../core/core.js';
import type { AgentLink, EngineMessage } from '../fleet/connection-registry.js';
import type { EngineLimits } from './engine-limits.js';
import type { Leases } from './leases.js';
import { RunItems } from './run-content.js';

export type RunMessage = Exclude<EngineMessage, { type: 'inventory' }>;

interface Entry {
  readonly observation: Observation;
  heard: number;
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
   * Carries out a plan or drift check. Rejects with `agent_not_connected` when the connection is or gets lost, with
   * `agent_timeout` after silence, with the reason when `signal` is aborted with a Fault.
   */
  async run(observation: Observation, signal: AbortSignal): Promise<Observed> {
    const abort = () => this.drop(observation, abortFault(signal));
    if (signal.aborted) throw abortFault(signal);
    signal.addEventListener('abort', abort, { once: true });
    this.entries.set(observation.runId, { observation, heard: this.options.clock.monotonic() });
    try {
      if (!this.options.link.send(observation.nodeId, observation.messages())) throw connectionLost(observation);
      return await observation.outcome;
    } finally {
      signal.removeEventListener('abort', abort);
      this.entries.delete(observation.runId);
    }
  }

  /** Handles a message of a run that is here; false when it is not. Throws `protocol_violation`. */
  receive(nodeId: NodeId, message: RunMessage): boolean {
    const entry = this.entries.get(message.run_id);
    if (entry === undefined) return false;
    const { observation } = entry;
    if (observation.nodeId !== nodeId) {
      throw new Fault('protocol_violation', `the agent speaks of run ${message.run_id}, which is another agent's`);
    }
    entry.heard = this.options.clock.monotonic();
    if (message.type === 'run_results') observation.take(message);
    if (message.type === 'run_finished') observation.finish(message);
    return true;
  }

  disconnected(nodeId: NodeId): void {
    for (const { observation } of this.entries.values()) {
      if (observation.nodeId === nodeId) observation.fail(connectionLost(observation));
    }
  }

  /** Ends those whose agent has been silent for too long. */
  tick(): void {
    const { clock, limits } = this.options;
    const now = clock.monotonic();
    for (const { observation, heard } of this.entries.values()) {
      if (now - heard >= limits.silence) this.drop(observation, silent(observation, limits.silence));
    }
  }

  /** The orchestrator stops. */
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

const NOUN = { plan: 'plan', drift: 'drift check' } as const;

const connectionLost = ({ mode, nodeId }: Observation): Fault =>
  new Fault('agent_not_connected', `the connection to agent ${nodeId} was lost during the ${NOUN[mode]}`, {
    hint: 'try again when the agent is back',
  });

const silent = ({ mode, nodeId }: Observation, silence: number): Fault =>
  new Fault('agent_timeout', `agent ${nodeId} said nothing about the ${NOUN[mode]} for ${silence / 1000} s`, {
    hint: 'look at the log of the agent and try again',
  });

/** What the agent said at the end. */
export interface Observed {
  /** In the order of the run. */
  readonly results: readonly ResourceResult[];
  readonly end: AgentMessageOf<'run_finished'>['end'];
  /** SHA-256 of what a plan observed. */
  readonly observed: string | null;
  readonly error: AgentMessageOf<'run_finished'>['error'];
}

interface ObservationOptions {
  readonly runId: string;
  readonly nodeId: NodeId;
  readonly mode: 'plan' | 'drift';
  readonly content: RunContent;
  /** Told of each result as it comes. */
  readonly onResult: (result: ResourceResult) => void;
}

export class Observation {
  readonly runId: string;
  readonly nodeId: NodeId;
  readonly mode: 'plan' | 'drift';
  /** Rejects with the Fault given to `fail`. */
  readonly outcome: Promise<Observed>;
  private readonly content: RunContent;
  private readonly items: RunItems;
  private readonly onResult: (result: ResourceResult) => void;
  private readonly received: RunItem[] = [];
  private resolve: (observed: Observed) => void = () => undefined;
  private reject: (fault: Fault) => void = () => undefined;

  constructor(options: ObservationOptions) {
    this.runId = options.runId;
    this.nodeId = options.nodeId;
    this.mode = options.mode;
    this.content = options.content;
    this.items = new RunItems(options.content);
    this.onResult = options.onResult;
    this.outcome = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // Whoever waits gets the rejection; when nobody does any more, it is no unhandled one.
    this.outcome.catch(() => undefined);
  }

  /** What to send to begin it. */
  messages(): readonly OrchestratorMessage[] {
    return cutRun({ run_id: this.runId, mode: this.mode, epoch: 0, generation: 0 }, this.content);
  }

  /** Throws `protocol_violation` for results that are not of this run or not in sequence. */
  take({ from, items }: AgentMessageOf<'run_results'>): void {
    if (from !== this.received.length) {
      throw violation(this.runId, `results from ${from} when ${this.received.length} were next`);
    }
    const checked = this.items.check(items);
    this.items.note(checked.map((item) => item.index));
    this.received.push(...checked);
    for (const { result } of checked) this.onResult(result);
  }

  /** Throws `protocol_violation` when the numbers do not add up. */
  finish({ end, results, observed, error }: AgentMessageOf<'run_finished'>): void {
    if (results !== this.received.length) {
      throw violation(this.runId, `${results} results in all after ${this.received.length}`);
    }
    const complete = this.received.length === this.items.count;
    if (end === 'succeeded' && !complete) throw violation(this.runId, 'success without all results');
    const ordered = [...this.received].sort((a, b) => a.index - b.index);
    this.resolve({ results: ordered.map((item) => item.result), end, observed, error });
  }

  fail(fault: Fault): void {
    this.reject(fault);
  }
}

const violation = (runId: string, what: string): Fault =>
  new Fault('protocol_violation', `the agent reported ${what} for run ${runId}`);

/** Runs a plan or a drift check under the lease of its agent. */
interface ObserverOptions {
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

/** The Fault that the signal was aborted with; `cancelled` when it is none. */
export function abortFault({ reason }: AbortSignal): Fault {
  if (reason instanceof Fault) return reason;
  return new Fault('cancelled', 'the caller went away', { cause: reason });
}
