/** Runs a command on several agents, so many at a time. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import { type WalkResult, walk } from '../../kernel/walk.js';
import type { Context } from '../context.js';
import { agentName, count } from '../format.js';
import { type ExecEnd, type ExecResult, standingOfEnd } from './exec-end.js';
import type { ExecInput } from './exec-input.js';
import type { ExecSink } from './exec-sink.js';
import { type ExecOrder, runOnAgent } from './run-on-agent.js';
import type { RunningCommands } from './running-commands.js';

export interface FleetExec {
  readonly agents: readonly Agent[];
  readonly order: ExecOrder;
  /** Agents at a time. */
  readonly batch: number;
  readonly running: RunningCommands;
  readonly input: ExecInput | null;
  sinkFor(agent: Agent): ExecSink;
  /** Told of each agent as it ends; the next one of its place waits for it. */
  onEnd(result: ExecResult): Promise<void>;
}

/** What the whole command line hangs on, so that no further agent is tried. */
const FATAL = ['unauthenticated', 'role_forbidden', 'admin_required', 'tls_required', 'tls_mismatch'] as const;

interface Visit extends WalkResult {
  readonly result: ExecResult;
}

/** The results in the order of the agents. Throws the fault that concerns all of them alike. */
export async function execAgents(context: Context, api: ApiClient, exec: FleetExec): Promise<readonly ExecResult[]> {
  const { agents, order, batch, running, input } = exec;
  const thrown: unknown[] = [];
  let ended = 0;
  const visitOf = (agent: Agent, end: ExecEnd): Visit => ({ result: { agent, end }, status: standingOfEnd(end) });
  const visits = await walk<Agent, Visit>({
    agents,
    concurrency: batch,
    canary: 0,
    maxFailures: null,
    isConnected: ({ connected }) => connected,
    halted: () => (thrown.length > 0 ? 'the command fails' : running.halted),
    run: async (agent) => {
      try {
        const end = await runOnAgent(context, api, { agent, order, sink: exec.sinkFor(agent), running, input });
        if (end.kind === 'fault' && isFatal(end.fault)) thrown.push(end.fault);
        return visitOf(agent, end);
      } catch (error) {
        thrown.push(error);
        return visitOf(agent, { kind: 'fault', fault: new Fault('internal', messageOf(error)) });
      }
    },
    skip: (agent, why) => visitOf(agent, { kind: 'skipped', why }),
    onResult: async ({ result }) => {
      ended += 1;
      if (thrown.length > 0) return;
      if (agents.length > 1) {
        context.progress.live(`${ended} of ${count(agents.length, 'agent')} ended  ${agentName(result.agent)}`);
      }
      await exec.onEnd(result);
    },
  });
  if (thrown.length > 0) throw thrown[0];
  return visits.map(({ result }) => result);
}

const isFatal = (fault: Fault): boolean => isFault(fault, ...FATAL);
