/** Opens shells and commands: checks operator, agent and limits, asks the agent, and stores the session before it starts. */

import type { Operator } from '../../src/contract/operators.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault, isFault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { COMMAND_WORDS, type OrchestratorMessageOf } from '../../src/wire/messages.js';
import type { Core } from '../core/core.js';
import type { RequestContext } from '../core/domain-event.js';
import { notConnected } from '../fleet/not-connected.js';
import { approvedAgent, mayUse, operatorRemoved, rightTo } from './eligibility.js';
import type { LiveSessions, TerminalLink, TerminalRules } from './live-sessions.js';
import type { LiveSession } from './session/live-session.js';
import { type ResumeSecrets, resumeHash } from './session/resume.js';
import type { SessionFacts } from './session/session-core.js';
import { hasEnded } from './session/session-lifecycle.js';
import type { SessionFactory, SessionParts, Size } from './session-factory.js';
import { findTerminal, type ResumeKey, type SessionStore, type TerminalRow } from './session-store.js';
import { type StartRequests, tooOld } from './start-requests.js';
import type { Tickets } from './tickets.js';

interface SessionOpenerOptions extends Pick<Core, 'db' | 'newId'> {
  readonly store: SessionStore;
  readonly live: LiveSessions;
  readonly startRequests: StartRequests;
  readonly factory: SessionFactory;
  readonly tickets: Tickets;
  readonly link: TerminalLink;
  readonly rules: () => TerminalRules;
  readonly clock: Pick<Clock, 'now'>;
  readonly resumeSecrets: ResumeSecrets;
}

export type Caller = Pick<Operator, 'operator_id' | 'username'>;

export interface ShellRequest extends Size {
  readonly nodeId: string;
  readonly operator: Caller;
  /** TERM of the client; empty without one. */
  readonly term: string;
  readonly shell: string | null;
  /** Variables as `NAME=value`. The agent decides which it accepts. */
  readonly env: readonly string[];
}

export interface ExecRequest {
  readonly nodeId: string;
  readonly operator: Caller;
  readonly command: readonly string[];
  readonly timeoutSecs: number | null;
  readonly stdin: boolean;
  /** True to wait until no process has the output open; null for a client that does not know of open output. */
  readonly wait: boolean | null;
  readonly env: readonly string[];
  /** Terminal of the command, with a non-empty TERM; null without one. */
  readonly tty: (Size & { readonly term: string }) | null;
}

export interface Opened {
  readonly sessionId: string;
  /** Ticket with which the opener attaches as the writer. */
  readonly ticket: string;
}

type Program = Pick<
  OrchestratorMessageOf<'terminal_open'>,
  'shell' | 'timeout_secs' | 'stdin' | 'wait' | 'env' | 'tty'
>;

/** Size of a command without a terminal. */
const NO_SIZE: Size = { cols: 80, rows: 24 };

export class SessionOpener {
  private readonly options: SessionOpenerOptions;

  constructor(options: SessionOpenerOptions) {
    this.options = options;
  }

  /**
   * Opens a shell. Throws `agent_not_found`, `agent_not_approved`, `agent_not_connected`, `agent_timeout`, `terminal_disabled`,
   * `terminal_unsupported`, `terminal_limit`, `shell_not_allowed`, `recording_failed`.
   */
  async openShell(request: ShellRequest, context: RequestContext): Promise<Opened> {
    const { cols, rows, term, shell, env } = request;
    const facts = await this.factsOf(request, { kind: 'shell', command: null, term }, context);
    const over = this.overLimit(request.operator);
    if (over !== null) {
      await this.refused(facts, over, context);
      throw over;
    }
    return this.open(facts, { cols, rows }, { shell, timeout_secs: null, stdin: true, env: [...env] }, context);
  }

  /** Starts a command. Throws as `openShell` without `shell_not_allowed`, and `command_missing`, `command_not_executable`. */
  async exec(request: ExecRequest, context: RequestContext): Promise<Opened> {
    const { command, timeoutSecs, stdin, wait, env, tty } = request;
    const facts = await this.factsOf(request, { kind: 'exec', command, term: tty?.term ?? '' }, context);
    const isOnTerminal = tty !== null;
    const program = { shell: null, timeout_secs: timeoutSecs, stdin: stdin || isOnTerminal, env: [...env] };
    const size = tty === null ? NO_SIZE : { cols: tty.cols, rows: tty.rows };
    const more = isOnTerminal ? { tty: true } : wait === null ? {} : { wait };
    return this.open(facts, size, { ...program, ...more }, context);
  }

  private async factsOf(
    { nodeId, operator }: { readonly nodeId: string; readonly operator: Caller },
    program: Pick<SessionFacts, 'kind' | 'command' | 'term'>,
    context: RequestContext,
  ): Promise<SessionFacts> {
    const { clock, db, link, newId } = this.options;
    const asked = { id: null, nodeId: nodeId as NodeId, nodeName: null, ...program };
    const agent = await this.audited(asked, context, () => approvedAgent(db, nodeId));
    if (!link.isConnected(agent.nodeId)) {
      throw notConnected(agent.name ?? agent.nodeId, link.holdOf(agent.nodeId));
    }
    await this.audited({ ...asked, nodeName: agent.name }, context, async () => {
      if (!link.supports(agent.nodeId, 'terminal_open')) throw tooOld(agent.name ?? agent.nodeId);
    });
    return {
      id: newId(),
      nodeId: agent.nodeId,
      nodeName: agent.name,
      operatorId: operator.operator_id,
      operator: operator.username,
      openedAt: clock.now(),
      ...program,
    };
  }

  /**
   * Returns `terminal_limit` if the operator has too many terminals. Runs right before the session is added, so that
   * concurrent requests count each other.
   */
  private overLimit({ operator_id: operatorId }: Caller): Fault | null {
    const { perOperator } = this.options.rules();
    const open = this.options.live.shellsOf(operatorId);
    if (open < perOperator) return null;
    return new Fault('terminal_limit', `you have ${open} terminals open, and ${perOperator} is the most`, {
      hint: 'close one that you do not need: orch term list',
    });
  }

  private async open(facts: SessionFacts, size: Size, program: Program, context: RequestContext): Promise<Opened> {
    const { store, live, startRequests: opening, factory: parts, resumeSecrets, tickets } = this.options;
    const { id: sessionId, nodeId } = facts;
    const firstSecret = resumeSecrets.issue(sessionId, facts.operatorId);
    const session = live.add(facts, null);
    let made: SessionParts | null = null;
    try {
      // From here on, removing the operator or the right ends the session.
      const right = rightTo(facts, facts.operatorId, 'write');
      if (!(await mayUse(this.options, facts.operatorId, right, nodeId))) throw operatorRemoved();
      const answer = await opening.ask(nodeId, {
        type: 'terminal_open',
        session_id: sessionId,
        ticket: tickets.issue({ for: 'agent', sessionId, nodeId }),
        operator: facts.operator,
        kind: facts.kind,
        term: facts.term,
        ...commandOf(facts.command),
        ...size,
        ...program,
      });
      refuseOver(session);
      made = await parts.begin(session, answer, size);
      refuseOver(session);
      // Stores the key of the first client too, which saves that client a write when it attaches.
      const key = { hash: resumeHash(firstSecret), operatorId: facts.operatorId };
      await store.opened(facts, sessionRow(facts, made, key), context);
      await this.storeEarlyEnd(session, made);
      refuseOver(session);
      session.open(made);
    } catch (error) {
      session.endInBackground('failed');
      made?.screen?.close();
      if (made !== null) await this.discardRecording(facts, made);
      if (isFault(error)) await this.refused(facts, error, context);
      throw error;
    }
    const operator = { operator_id: facts.operatorId, username: facts.operator };
    const grant = { for: 'client', sessionId, nodeId, operator, mode: 'write', take: false, firstSecret } as const;
    return { sessionId, ticket: tickets.issue(grant) };
  }

  /** Deletes the empty recording of a session that could not open, unless the store knows the session. */
  private async discardRecording({ id }: SessionFacts, { recording }: SessionParts): Promise<void> {
    const isUnknown = await findTerminal(this.options.db, id).then(
      (row) => row === null,
      () => false,
    );
    await (isUnknown ? recording.discard() : recording.seal(null));
  }

  /** Stores the end of a session that ended while its start was being stored. */
  private async storeEarlyEnd({ facts, state }: LiveSession, { recording, size }: SessionParts): Promise<void> {
    if (!hasEnded(state)) return;
    const transcriptSha256 = await recording.seal(null);
    const { exit } = state;
    await this.options.store.ended(facts, {
      exit,
      bytes: 0,
      size,
      recording: recording.state,
      transcriptSha256,
      by: null,
    });
  }

  /** Runs a check, and records its refusal in the audit log. */
  private async audited<T>(facts: Asked, context: RequestContext, check: () => Promise<T>): Promise<T> {
    try {
      return await check();
    } catch (error) {
      if (isFault(error)) await this.refused(facts, error, context);
      throw error;
    }
  }

  private async refused(facts: Asked, { code }: Fault, context: RequestContext): Promise<void> {
    if (UNAUDITED.has(code)) return;
    const { actor, address, requestId } = context;
    await this.options.store.refused(facts, { reason: code, by: actor, address, requestId });
  }
}

/** Returns the members of a request for a command: earlier agents take only the first words, and say so by their answer. */
function commandOf(
  words: SessionFacts['command'],
): Pick<OrchestratorMessageOf<'terminal_open'>, 'command' | 'more_words'> {
  if (words === null) return { command: null };
  const command = words.slice(0, COMMAND_WORDS);
  return words.length === command.length ? { command } : { command, more_words: words.slice(COMMAND_WORDS) };
}

/** The request; the ID is null before there is a session. */
type Asked = Parameters<SessionStore['refused']>[0];

/** Faults that refuse nothing: there is no such agent, it is away, or the store is. */
const UNAUDITED: ReadonlySet<string> = new Set(['agent_not_found', 'agent_not_connected', 'store_unavailable']);

/** Throws when the session ended before it was open: its operator was removed, its agent rejected, or the agent lost it. */
function refuseOver({ state, facts }: LiveSession): void {
  if (!hasEnded(state)) return;
  if (state.exit.reason === 'operator_removed') throw operatorRemoved();
  if (state.exit.reason === 'agent_lost') {
    throw new Fault('terminal_unsupported', 'the process that runs terminals on the agent ended before it began', {
      hint: 'try again, and look at the log of the agent if it happens again',
    });
  }
  throw new Fault('agent_not_approved', `agent ${facts.nodeId} is no longer approved`, {
    hint: 'see what there is: orch agents list',
  });
}

/** Returns the row of a new session. @param key resume key of the opener */
const sessionRow = (facts: SessionFacts, { program, size, recording }: SessionParts, key: ResumeKey): TerminalRow => ({
  session_id: facts.id,
  node_id: facts.nodeId,
  node_name: facts.nodeName,
  operator_id: facts.operatorId,
  operator: facts.operator,
  kind: facts.kind,
  user: program.user,
  shell: program.shell,
  command: facts.command,
  cols: size.cols,
  rows: size.rows,
  term: facts.term,
  status: 'active',
  reason: null,
  exit_code: null,
  exit_signal: null,
  opened_at: facts.openedAt,
  closed_at: null,
  recording: recording.state,
  transcript: recording.path,
  transcript_sha256: null,
  output_bytes: 0,
  resume_hash: key.hash,
  resume_operator_id: key.operatorId,
});
