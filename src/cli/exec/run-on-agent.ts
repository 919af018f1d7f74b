/** Runs a command on one agent to its end. */
import type { ApiClient } from '../../client/api-client.js';
import { connectTerminal } from '../../client/terminal/connect-terminal.js';
import type { LinkState, TerminalEnd } from '../../client/terminal/terminal-events.js';
import type { Agent } from '../../contract/agents.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentName } from '../format.js';
import type { ExecEnd } from './exec-end.js';
import type { ExecInput, InputReader } from './exec-input.js';
import type { ExecSink } from './exec-sink.js';
import { InOrder } from './in-order.js';
import type { RunningCommands } from './running-commands.js';

export interface ExecOrder {
  readonly command: readonly string[];
  /** Null for as long as it takes. */
  readonly timeoutSecs: number | null;
  /** `NAME=value` of this end, for the agents to choose from. */
  readonly env: readonly string[];
}

export interface AgentExec {
  readonly agent: Agent;
  readonly order: ExecOrder;
  readonly sink: ExecSink;
  readonly running: RunningCommands;
  /** Null for a command that reads nothing. */
  readonly input: ExecInput | null;
}

/** Faults are how it ended; what is thrown is our own mistake. */
export async function runOnAgent(context: Context, api: ApiClient, exec: AgentExec): Promise<ExecEnd> {
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
        env: [...order.env],
      },
      signal: running.signal,
    });
    const end = await follow(context, api, { ...exec, input, sessionId: opened.session_id, wsUrl: opened.ws_url });
    await sink.end();
    return end.kind === 'exit' ? end : { kind: 'fault', fault: faultOf(end) };
  } catch (error) {
    if (!isFault(error)) throw error;
    return { kind: 'fault', fault: error };
  } finally {
    done();
    input?.stop();
  }
}

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
