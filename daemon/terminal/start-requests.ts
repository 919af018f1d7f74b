/** Asks agents to start programs and waits for their answers. */

import type { FaultCode } from '../../src/kernel/fault.js';
import { Fault, type FaultOptions } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { type AgentMessageOf, COMMAND_WORDS, type OrchestratorMessageOf } from '../../src/wire/messages.js';
import { notConnected } from '../fleet/not-connected.js';
import type { TerminalLink } from './live-sessions.js';
import type { ProgramFacts } from './session/session-core.js';

type Answer = AgentMessageOf<'terminal_answer'>;

interface Waiting {
  readonly nodeId: NodeId;
  /** True when the request is for a command on a terminal. */
  /** Abilities that the request needs. */
  readonly needs: readonly (keyof typeof CANNOT)[];
  /** Fails the request when the agent stays silent. */
  readonly timer: NodeJS.Timeout;
  readonly resolve: (program: ProgramFacts) => void;
  readonly reject: (fault: Fault) => void;
}

interface StartRequestsOptions {
  readonly link: TerminalLink;
  /** Milliseconds without any answer of the agent. Each answer restarts it, because a busy agent answers one by one. */
  readonly timeoutMs: number;
}

/** Error codes that an agent may refuse with. Other codes become `terminal_unsupported`. */
const REFUSALS: ReadonlySet<string> = new Set<FaultCode>([
  'terminal_disabled',
  'terminal_unsupported',
  'terminal_limit',
  'shell_not_allowed',
  'command_missing',
  'command_not_executable',
]);

const HINTS: Readonly<Partial<Record<FaultCode, string>>> = {
  terminal_disabled:
    'on its machine, write "remote_terminal: {enabled: true}" into /etc/orch/agent.yaml (make the directory if it is missing); the agent reads it within seconds',
  terminal_limit: 'close a session that is not needed: orch term list',
  shell_not_allowed: 'leave the shell to the agent, or set remote_terminal.allow_operator_shell_override there',
};

export class StartRequests {
  private readonly options: StartRequestsOptions;
  private readonly waiting = new Map<string, Waiting>();

  constructor(options: StartRequestsOptions) {
    this.options = options;
  }

  /** Asks the agent. Throws the agent's refusal, `agent_not_connected`, `agent_timeout`. */
  ask(nodeId: NodeId, message: OrchestratorMessageOf<'terminal_open'>): Promise<ProgramFacts> {
    const { link, timeoutMs } = this.options;
    const id = message.session_id;
    const needs = (['tty', 'wait', 'more_words'] as const).filter(
      (name) => message[name] != null && message[name] !== false,
    );
    const timer = setTimeout(() => this.fail(id, timedOut(timeoutMs)), timeoutMs);
    const answer = new Promise<ProgramFacts>((resolve, reject) =>
      this.waiting.set(id, { nodeId, needs, timer, resolve, reject }),
    );
    if (!link.send(nodeId, [message])) this.fail(id, notConnected(nodeId, null));
    return answer.finally(() => clearTimeout(timer));
  }

  /** Takes an answer. Returns false when no request waits for it. */
  answered(nodeId: NodeId, { session_id: id, error, user, shell, ...can }: Answer): boolean {
    const waiting = this.waiting.get(id);
    if (waiting === undefined || waiting.nodeId !== nodeId) return false;
    this.waiting.delete(id);
    for (const other of this.waiting.values()) if (other.nodeId === nodeId) other.timer.refresh();
    if (error !== null) waiting.reject(refusal(error));
    else {
      const missing = waiting.needs.find((name) => can[name] !== true);
      if (missing === undefined) waiting.resolve({ user, shell });
      else waiting.reject(CANNOT[missing](nodeId));
    }
    return true;
  }

  /** Fails all requests to an agent that disconnected. */
  failAgent(nodeId: NodeId): void {
    for (const [id, waiting] of this.waiting) if (waiting.nodeId === nodeId) this.fail(id, notConnected(nodeId, null));
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

const noWait = (label: string): Fault =>
  new Fault('terminal_unsupported', `the agent of ${label} is of an orch that does not wait for open output`, {
    hint: 'install the orch of the orchestrator on that machine, or leave --wait out',
  });

const tooManyWords = (label: string): Fault =>
  new Fault(
    'terminal_unsupported',
    `the agent of ${label} is of an orch that takes ${COMMAND_WORDS} words of a command`,
    {
      hint: 'install the orch of the orchestrator on that machine, or pass the words in standard input',
    },
  );

const CANNOT = { tty: noTty, wait: noWait, more_words: tooManyWords } as const;

const timedOut = (timeoutMs: number): Fault =>
  new Fault('agent_timeout', `the agent answered nothing for ${timeoutMs / 1000} s`, {
    hint: 'look at its log, or try again',
  });
