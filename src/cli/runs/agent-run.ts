/** Results of a run on agents, their exit status and their JSON body. */
import type { Agent } from '../../contract/agents.js';
import type { RolloutResult } from '../../contract/rollouts.js';
import type { DriftDetail, RunResult } from '../../contract/runs.js';
import { type Fault, isFault, isFaultCode } from '../../kernel/fault.js';
import { EXIT, type ExitStatus, exitStatusOfCode } from '../exit-status.js';

export type Result = RunResult | DriftDetail;

/** The members of an agent that its name needs. */
export type RunAgent = Pick<Agent, 'node_id' | 'name' | 'initial_hostname'> & Partial<Pick<Agent, 'trial'>>;

/** An agent with its result, or with the fault that prevented one. */
export type AgentRun =
  | { readonly agent: RunAgent; readonly result: Result }
  | {
      readonly agent: RunAgent;
      readonly fault: Fault;
      /** The result of a rollout. */
      readonly reported?: RolloutResult;
    };

type AgentStanding = RolloutResult['status'];

export const hasResult = (run: AgentRun): run is Extract<AgentRun, { readonly result: Result }> => 'result' in run;

/** Returns the exit status of one agent; 2 for changes only if `detailed`. */
function exitStatusOfRun(run: AgentRun, detailed: boolean): ExitStatus {
  if (!hasResult(run)) return exitStatusOfCode(run.fault.code);
  const { status, error, has_changes } = run.result;
  if (status === 'succeeded' || status === 'in_sync' || status === 'drifted') {
    return detailed && has_changes ? EXIT.changes : EXIT.done;
  }
  if (status === 'rolled_back') return EXIT.rolledBack;
  const ofError = error !== null && isFaultCode(error.code) ? exitStatusOfCode(error.code) : EXIT.error;
  return ofError === EXIT.error ? EXIT.partlyFailed : ofError;
}

/**
 * Returns the exit status of a fleet. If all agents fail alike, their status stays; offline agents count only if no other agent
 * failed. With `detailed`, changes take precedence over offline agents, because few fleets are always complete.
 */
export function exitStatusOfRuns(runs: readonly AgentRun[], detailed: boolean): ExitStatus {
  const statuses = runs.map((run) => exitStatusOfRun(run, detailed));
  const failures = statuses.filter((status) => status !== EXIT.done && status !== EXIT.changes);
  const [first] = failures;
  if (first === undefined) return statuses.includes(EXIT.changes) ? EXIT.changes : EXIT.done;
  if (failures.every((status) => status === EXIT.offline)) {
    return statuses.includes(EXIT.changes) ? EXIT.changes : EXIT.offline;
  }
  return failures.length === runs.length && failures.every((status) => status === first) ? first : EXIT.partlyFailed;
}

export function standingOf(run: AgentRun): AgentStanding {
  if (!hasResult(run) && run.reported !== undefined) return run.reported.status;
  const status = exitStatusOfRun(run, false);
  if (status === EXIT.done) return 'succeeded';
  return status === EXIT.offline ? 'unreachable' : 'failed';
}

/** Returns whether an agent had no result because it is offline. */
export const isOffline = (run: AgentRun): boolean =>
  hasResult(run) ? standingOf(run) === 'unreachable' : isFault(run.fault, 'agent_not_connected', 'not_delivered');

/** Returns the JSON body of a fleet. */
export function runsBody(runs: readonly AgentRun[]) {
  const standings = runs.map(standingOf);
  const howMany = (standing: AgentStanding) => standings.filter((other) => other === standing).length;
  return {
    has_changes: runs.some((run) => hasResult(run) && run.result.has_changes),
    results: runs.map((run) => ({
      node_id: run.agent.node_id,
      name: run.agent.name,
      status: standingOf(run),
      operation_id: hasResult(run) ? run.result.operation_id : (run.reported?.operation_id ?? null),
      summary: hasResult(run) ? run.result.summary : (run.reported?.summary ?? null),
      result: hasResult(run) ? run.result : null,
      error: hasResult(run) ? run.result.error : { code: run.fault.code, message: run.fault.message },
    })),
    summary: {
      agents: runs.length,
      succeeded: howMany('succeeded'),
      failed: howMany('failed'),
      unreachable: howMany('unreachable'),
      skipped: howMany('skipped'),
    },
  };
}
