/** Runs a command on agents, several in parallel. */
import type { ApiClient } from '../../client/api-client.js';
import { connectTerminal } from '../../client/terminal/terminal-connection.js';
import type { LinkState, TerminalEnd } from '../../client/terminal/terminal-session.js';
import type { Agent } from '../../contract/agents.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentName, count } from '../format.js';
import { visitAgents } from '../nodes/visit-agents.js';
import { type ExecEnd, type ExecResult, statusOfEnd } from './exec-end.js';
import type { ExecInput, InputReader } from './exec-input.js';
import type { RunningCommands } from './running-commands.js';
import type { ExecSink } from './sinks.js';

export interface FleetExec {
  readonly agents: readonly Agent[];
  readonly order: ExecOrder;
  /** Maximum number of agents in parallel. */
  readonly batch: number;
  readonly running: RunningCommands;
  readonly input: ExecInput | null;
  sinkFor(agent: Agent): ExecSink;
  /** Called as each agent ends. The next agent starts once it resolves. */
  onEnd(result: ExecResult): Promise<void>;
}

/** Returns the results in the order of the agents. Throws a fault that concerns all agents. */
export function execAgents(context: Context, api: ApiClient, exec: FleetExec): Promise<readonly ExecResult[]> {
  const { agents, order, batch, running, input } = exec;
  let ended = 0;
  return visitAgents<ExecResult>({
    agents,
    concurrency: batch,
    stopReason: () => running.stopReason,
    visit: async (agent) => ({
      agent,
      end: await runOnAgent(context, api, { agent, order, sink: exec.sinkFor(agent), running, input }),
    }),
    failed: (agent, fault) => ({ agent, end: { kind: 'fault', fault } }),
    skipped: (agent, why) => ({ agent, end: { kind: 'skipped', why } }),
    statusOf: ({ end }) => statusOfEnd(end),
    onResult: async (result) => {
      ended += 1;
      if (agents.length > 1) {
        context.progress.live(() => `${ended} of ${count(agents.length, 'agent')} ended  ${agentName(result.agent)}`);
      }
      await exec.onEnd(result);
    },
  });
}

interface ExecOrder {
  readonly command: readonly string[];
  /** Timeout in seconds; null for none. */
  readonly timeoutSecs: number | null;
  /** True to wait until no process has the output open. */
  readonly wait: boolean;
  /** Environment of the client as `NAME=value`; agents accept some of it. */
  readonly env: readonly string[];
}

interface AgentExec {
  readonly agent: Agent;
  readonly order: ExecOrder;
  readonly sink: ExecSink;
  readonly running: RunningCommands;
  /** Shared input; null for none. */
  readonly input: ExecInput | null;
}

/** Runs a command on one agent. Throws a fault if its end is not known. */
async function runOnAgent(context: Context, api: ApiClient, exec: AgentExec): Promise<ExecEnd> {
  const { agent, order, sink, running } = exec;
  const input = exec.input?.reader() ?? null;
  const done = running.begin();
  try {
    const opened = await api.call('execOnAgent', {
      params: { node_id: agent.node_id },
      body: {
        command: [...order.command],
        timeout_secs: order.timeoutSecs,
        stdin: input !== null,
        wait: order.wait,
        env: [...order.env],
      },
      signal: running.signal,
    });
    const end = await follow(context, api, { ...exec, input, sessionId: opened.session_id, wsUrl: opened.ws_url });
    await sink.end();
    if (end.kind === 'exit' && end.exit.output_open === true) context.warn(`${agentName(agent)}: ${OUTPUT_OPEN}`);
    if (end.kind !== 'exit') throw faultOf(end);
    return end;
  } finally {
    done();
    input?.stop();
  }
}

const OUTPUT_OPEN =
  'a process that the command left behind has its output open, and what it writes from now on is missing; --wait waits for it';

interface Following extends Omit<AgentExec, 'input'> {
  readonly input: InputReader | null;
  readonly sessionId: string;
  readonly wsUrl: string;
}

function follow(context: Context, api: ApiClient, following: Following): Promise<TerminalEnd> {
  const { agent, sink, running, input, sessionId, wsUrl } = following;
  const inOrder = new InOrder();
  return new Promise((resolve) => {
    const session = connectTerminal({
      api,
      sessionId,
      wsUrl,
      mode: 'write',
      clock: context.clock,
      random: Math.random,
      queueInput: true,
      events: {
        output: (stream, bytes, done) => sink.output(stream, bytes, inOrder.next(done)),
        snapshot: (_snapshot, done) => done(),
        note: (note) => {
          if (note.kind === 'recording' && !note.recorded) context.warn(`${agentName(agent)}: ${note.text}`);
          if (note.kind === 'ending') context.warn(`${agentName(agent)}: ${note.text}`);
        },
        state: (state) => {
          if (state.kind === 'connected') running.connected(session);
          tellState(context, agent, state);
        },
        drain: () => input?.drain(),
        inputDropped: () => {},
        ended: (end) => {
          running.delete(session);
          resolve(end);
        },
      },
    });
    running.add(session);
    input?.begin(session);
  });
}

function tellState({ note, progress }: Context, agent: Agent, state: LinkState): void {
  if (state.kind === 'silent' || (state.kind === 'connected' && !state.resumed)) return;
  progress.end();
  if (state.kind === 'connected') note(`${agentName(agent)}: connected again`);
  else note(`${agentName(agent)}: the connection was lost, connecting again: ${state.cause.message}`);
}

function faultOf(end: Exclude<TerminalEnd, { readonly kind: 'exit' }>): Fault {
  if (end.kind === 'failed') return end.fault;
  return new Fault('unreachable', 'the connection was given up, and the command may go on', {
    hint: 'see whether it does: orch term list --kind exec',
  });
}

/** Calls back in the order of registration, whatever the order of completion. */
export class InOrder {
  private readonly waiting: { finished: boolean; readonly done: () => void }[] = [];

  /** Registers work. The caller calls the returned function when the work is finished. */
  next(done: () => void): () => void {
    const piece = { finished: false, done };
    this.waiting.push(piece);
    return () => {
      piece.finished = true;
      while (this.waiting[0]?.finished) this.waiting.shift()?.done();
    };
  }
}
