/** Asks agents to start programs, and waits for their answers. */
import { Fault, type FaultCode, type FaultOptions } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { AgentMessageOf, OrchestratorMessageOf } from '../../src/wire/messages.js';
import type { ProgramFacts } from './session/session-facts.js';
import type { TerminalLink } from './terminal-link.js';

type Answer = AgentMessageOf<'terminal_answer'>;

interface Waiting {
  readonly nodeId: NodeId;
  /** A command was to be started on a terminal. */
  readonly needsTty: boolean;
  /** Ends the wait for an agent that is silent. */
  readonly timer: NodeJS.Timeout;
  readonly resolve: (program: ProgramFacts) => void;
  readonly reject: (fault: Fault) => void;
}

export interface OpeningOptions {
  readonly link: TerminalLink;
  /** How long an agent that is asked may answer nothing, in milliseconds: one with much to do answers one after the other. */
  readonly patience: number;
}

/** What an agent may refuse with; what else it says is its failure. */
const REFUSALS: ReadonlySet<string> = new Set<FaultCode>([
  'terminal_disabled',
  'terminal_unsupported',
  'terminal_limit',
  'shell_not_allowed',
  'command_missing',
  'command_not_executable',
]);

const HINTS: Readonly<Partial<Record<FaultCode, string>>> = {
  terminal_disabled: 'on its machine, write "remote_terminal: {enabled: true}" into /etc/orch/agent.yaml',
  terminal_limit: 'close a session that is not needed: orch term list',
  shell_not_allowed: 'leave the shell to the agent, or set remote_terminal.allow_operator_shell_override there',
};

export class Opening {
  private readonly options: OpeningOptions;
  private readonly waiting = new Map<string, Waiting>();

  constructor(options: OpeningOptions) {
    this.options = options;
  }

  /** Throws what the agent refuses with, `agent_not_connected`, `agent_timeout`. */
  ask(nodeId: NodeId, message: OrchestratorMessageOf<'terminal_open'>): Promise<ProgramFacts> {
    const { link, patience } = this.options;
    const id = message.session_id;
    const needsTty = message.tty === true;
    const timer = setTimeout(() => this.fail(id, timedOut(patience)), patience);
    const answer = new Promise<ProgramFacts>((resolve, reject) =>
      this.waiting.set(id, { nodeId, needsTty, timer, resolve, reject }),
    );
    if (!link.send(nodeId, [message])) this.fail(id, notConnected(nodeId));
    return answer.finally(() => clearTimeout(timer));
  }

  /** False for an answer that nobody waits for. */
  answered(nodeId: NodeId, { session_id: id, error, user, shell, tty }: Answer): boolean {
    const waiting = this.waiting.get(id);
    if (waiting === undefined || waiting.nodeId !== nodeId) return false;
    this.waiting.delete(id);
    for (const other of this.waiting.values()) if (other.nodeId === nodeId) other.timer.refresh();
    if (error !== null) waiting.reject(refusal(error));
    else if (waiting.needsTty && tty !== true) waiting.reject(noTty(nodeId));
    else waiting.resolve({ user, shell });
    return true;
  }

  /** The agent is gone: nobody answers any more. */
  lost(nodeId: NodeId): void {
    for (const [id, waiting] of this.waiting) if (waiting.nodeId === nodeId) this.fail(id, notConnected(nodeId));
  }

  private fail(id: string, fault: Fault): void {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    waiting?.reject(fault);
  }
}

function refusal({ code, message }: { readonly code: string; readonly message: string }): Fault {
  if (!REFUSALS.has(code)) return new Fault('terminal_unsupported', `the agent could not open it: ${message}`);
  const known = code as FaultCode;
  const hint = HINTS[known];
  const options: FaultOptions = hint === undefined ? {} : { hint };
  return new Fault(known, message, options);
}

export const tooOld = (label: string): Fault =>
  new Fault('terminal_unsupported', `the agent of ${label} is of an orch without remote terminals`, {
    hint: 'install the orch of the orchestrator on that machine',
  });

const noTty = (label: string): Fault =>
  new Fault('terminal_unsupported', `the agent of ${label} is of an orch that runs no commands on a terminal`, {
    hint: 'install the orch of the orchestrator on that machine, or leave --tty out',
  });

export const notConnected = (label: string): Fault =>
  new Fault('agent_not_connected', `agent ${label} is not connected`, { hint: 'start it, or wait until it is back' });

const timedOut = (patience: number): Fault =>
  new Fault('agent_timeout', `the agent answered nothing for ${patience / 1000} s`, {
    hint: 'look at its log, or try again',
  });
