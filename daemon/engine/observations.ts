/** The plans and drift checks that are under way: sends them, routes what agents say about them, ends the silent ones. */
import { Fault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { Core } from '../core/core.js';
import type { AgentLink, EngineMessage } from '../fleet/connection-registry.js';
import { abortFault } from './abort-fault.js';
import type { EngineLimits } from './engine-limits.js';
import type { Observation, Observed } from './observation.js';

export type RunMessage = Exclude<EngineMessage, { type: 'inventory' }>;

interface Entry {
  readonly observation: Observation;
  heard: number;
}

export interface ObservationsOptions extends Pick<Core, 'clock'> {
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
