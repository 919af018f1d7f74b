/** The outcome of a command that ran something on agents. */
import { agentHandle } from '../format.js';
import type { Outcome } from '../outcome.js';
import type { RunKind } from '../render/plan.js';
import { runsView } from '../render/runs.js';
import { type AgentRun, exitStatusOfRuns, hasResult, runsBody } from './agent-run.js';

export interface RunOutcomeOptions {
  readonly kind: RunKind;
  /** Changes give the exit status 2. */
  readonly detailed: boolean;
  readonly verbose: boolean;
  /** The agents were chosen by an assignment or a selector, so that their number says nothing. */
  readonly fleet?: boolean;
}

/** `-o name` prints the agents that change, or changed. */
export const runOutcome = (
  runs: readonly AgentRun[],
  { kind, detailed, verbose, fleet }: RunOutcomeOptions,
): Outcome => ({
  body: runsBody(runs, fleet),
  names: runs.filter((run) => hasResult(run) && run.result.has_changes).map(({ agent }) => agentHandle(agent)),
  view: runsView(runs, { kind, verbose }),
  exitStatus: exitStatusOfRuns(runs, detailed),
});
