/** Does something on many agents, several at a time, with the client as the one that goes from agent to agent. */
import type { Agent } from '../../contract/agents.js';
import { Fault, type FaultCode, isFault, messageOf } from '../../kernel/fault.js';
import { type WalkResult, walk } from '../../kernel/walk-agents.js';

export interface AgentVisits<T> {
  readonly agents: readonly Agent[];
  /** Maximum number of agents at a time. */
  readonly concurrency: number;
  /** Number of connected agents that go first [default: 0]. */
  readonly canary?: number;
  /** Number of failed agents after which no other agent starts; null for no limit [default]. */
  readonly maxFailures?: number | null;
  /** Faults that fail the whole command, beside those of its login and its connection's identity. */
  readonly fatal?: readonly FaultCode[];
  /** Fails the whole command when it is aborted. */
  readonly signal?: AbortSignal;
  /** True for one named agent, whose fault is that of the command. */
  readonly isSingle?: boolean;
  /** Does the work on an agent. A fault that it throws stays with the agent, any other error fails the command. */
  visit(agent: Agent): Promise<T>;
  /** Returns the result of an agent whose visit has failed. */
  failed(agent: Agent, fault: Fault): T;
  /** Returns the result of an agent that was not visited. */
  skipped(agent: Agent, why: string): T;
  statusOf(result: T): WalkResult['status'];
  /** Returns why no other agent may start; null while agents may start [default]. */
  stopReason?(): string | null;
  /** Receives each result while the command goes on. The place of that agent stays taken until it resolves. */
  onResult?(result: T): Promise<void> | void;
}

/** Faults that concern every agent. */
const FATAL = ['unauthenticated', 'role_forbidden', 'admin_required', 'tls_required', 'tls_mismatch'] as const;

/** Returns the results in the order of the agents. Throws what fails the whole command; no further agent starts then. */
export async function visitAgents<T>(visits: AgentVisits<T>): Promise<readonly T[]> {
  const { agents, concurrency, canary = 0, maxFailures = null, fatal = [], isSingle = false, signal } = visits;
  const thrown: unknown[] = [];
  const withStatus = (result: T) => ({ result, status: visits.statusOf(result) });
  const results = await walk({
    agents,
    concurrency,
    canary,
    maxFailures,
    isConnected: ({ connected }: Agent) => connected,
    stopReason: () => (thrown.length > 0 ? 'the command fails' : (visits.stopReason?.() ?? null)),
    run: async (agent) => {
      try {
        return withStatus(await visits.visit(agent));
      } catch (error) {
        const isFatal = signal?.aborted || !isFault(error) || isFault(error, ...FATAL, ...fatal);
        if (isSingle || isFatal) thrown.push(error);
        const fault = isFault(error) ? error : new Fault('internal', messageOf(error));
        return withStatus(visits.failed(agent, fault));
      }
    },
    skip: (agent, why) => withStatus(visits.skipped(agent, why)),
    onResult: async ({ result }) => {
      if (thrown.length === 0) await visits.onResult?.(result);
      return result;
    },
  });
  if (thrown.length > 0) throw thrown[0];
  return results;
}
