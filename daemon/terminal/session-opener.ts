/** Opens shells and commands for operators: who may, on which agent, with what its output goes to. */
import type { Operator } from '../../src/contract/operators.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault, isFault } from '../../src/kernel/fault.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { OrchestratorMessageOf } from '../../src/wire/messages.js';
import type { RequestContext } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import { operatorRemoved, requireOperator } from './active-operator.js';
import { approvedAgent } from './approved-agent.js';
import type { LiveSessions } from './live-sessions.js';
import { notConnected, type Opening, tooOld } from './opening.js';
import type { PartsMaker } from './parts-maker.js';
import type { LiveSession } from './session/live-session.js';
import { resumeHash } from './session/resume-keys.js';
import type { ResumeSecrets } from './session/resume-secrets.js';
import type { SessionFacts } from './session/session-facts.js';
import type { SessionParts, Size } from './session/session-parts.js';
import { isOver } from './session/session-state.js';
import type { SessionBook } from './session-book.js';
import { sessionRow } from './session-row.js';
import { findTerminal } from './session-store.js';
import type { TerminalLink } from './terminal-link.js';
import type { TerminalRules } from './terminal-rules.js';
import type { Tickets } from './tickets.js';

export interface SessionOpenerOptions {
  readonly db: Queryable;
  readonly book: SessionBook;
  readonly live: LiveSessions;
  readonly opening: Opening;
  readonly parts: PartsMaker;
  readonly tickets: Tickets;
  readonly link: TerminalLink;
  readonly rules: () => TerminalRules;
  readonly clock: Pick<Clock, 'now'>;
  readonly newId: NewId;
  readonly resumeSecrets: ResumeSecrets;
}

export type Caller = Pick<Operator, 'operator_id' | 'username'>;

export interface ShellRequest extends Size {
  readonly nodeId: string;
  readonly operator: Caller;
  /** The client's TERM; empty when it has none. */
  readonly term: string;
  readonly shell: string | null;
  /** `NAME=value`, for the agent to choose from. */
  readonly env: readonly string[];
}

export interface ExecRequest {
  readonly nodeId: string;
  readonly operator: Caller;
  readonly command: readonly string[];
  readonly timeoutSecs: number | null;
  readonly stdin: boolean;
  readonly env: readonly string[];
  /** The terminal that it runs on, with a TERM that is not empty; null for none. */
  readonly tty: (Size & { readonly term: string }) | null;
}

export interface Opened {
  readonly sessionId: string;
  /** For the one who has opened it, to write. */
  readonly ticket: string;
}

type Program = Pick<OrchestratorMessageOf<'terminal_open'>, 'shell' | 'timeout_secs' | 'stdin' | 'env' | 'tty'>;

/** Of a command, which has no terminal. */
const NO_SIZE: Size = { cols: 80, rows: 24 };

export class SessionOpener {
  private readonly options: SessionOpenerOptions;

  constructor(options: SessionOpenerOptions) {
    this.options = options;
  }

  /**
   * Throws `agent_not_found`, `agent_not_approved`, `agent_not_connected`, `agent_timeout`, `terminal_disabled`,
   * `terminal_unsupported`, `terminal_limit`, `shell_not_allowed`, `recording_failed`.
   */
  async openShell(request: ShellRequest, context: RequestContext): Promise<Opened> {
    const { cols, rows, term, shell, env } = request;
    const facts = await this.factsOf(request, { kind: 'shell', command: null, term });
    this.refuseTooMany(request.operator);
    return this.open(facts, { cols, rows }, { shell, timeout_secs: null, stdin: true, env: [...env] }, context);
  }

  /** Throws as `openShell` does but for the shell, `command_missing` and `command_not_executable`. */
  async exec(request: ExecRequest, context: RequestContext): Promise<Opened> {
    const { command, timeoutSecs, stdin, env, tty } = request;
    const facts = await this.factsOf(request, { kind: 'exec', command, term: tty?.term ?? '' });
    const isOnTerminal = tty !== null;
    const program = { shell: null, timeout_secs: timeoutSecs, stdin: stdin || isOnTerminal, env: [...env] };
    const size = tty === null ? NO_SIZE : { cols: tty.cols, rows: tty.rows };
    return this.open(facts, size, { ...program, ...(isOnTerminal && { tty: true }) }, context);
  }

  private async factsOf(
    { nodeId, operator }: { readonly nodeId: string; readonly operator: Caller },
    program: Pick<SessionFacts, 'kind' | 'command' | 'term'>,
  ): Promise<SessionFacts> {
    const { clock, db, link, newId } = this.options;
    const agent = await approvedAgent(db, nodeId);
    if (!link.isConnected(agent.nodeId)) throw notConnected(agent.name ?? agent.nodeId);
    if (!link.knows(agent.nodeId, 'terminal_open')) throw tooOld(agent.name ?? agent.nodeId);
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

  /** To be called just before the session is there, so that requests at the same time count each other. */
  private refuseTooMany({ operator_id: operatorId }: Caller): void {
    const { perOperator } = this.options.rules();
    const open = this.options.live.shellsOf(operatorId);
    if (open < perOperator) return;
    throw new Fault('terminal_limit', `you have ${open} terminals open, and ${perOperator} is the most`, {
      hint: 'close one that you do not need: orch term list',
    });
  }

  private async open(facts: SessionFacts, size: Size, program: Program, context: RequestContext): Promise<Opened> {
    const { book, db, live, opening, parts, resumeSecrets, tickets } = this.options;
    const { id: sessionId, nodeId } = facts;
    const firstSecret = resumeSecrets.issue(sessionId, facts.operatorId);
    const session = live.add(facts, null);
    let made: SessionParts | null = null;
    try {
      // Now that a removal ends the session.
      await requireOperator(db, facts.operatorId);
      const answer = await opening.ask(nodeId, {
        type: 'terminal_open',
        session_id: sessionId,
        ticket: tickets.issue({ for: 'agent', sessionId, nodeId }),
        operator: facts.operator,
        kind: facts.kind,
        term: facts.term,
        command: facts.command === null ? null : [...facts.command],
        ...size,
        ...program,
      });
      refuseOver(session);
      made = await parts.begin(session, answer, size);
      refuseOver(session);
      // With the key of whoever comes first: its own change of the store would keep the one who waits waiting.
      const key = { hash: resumeHash(firstSecret), operatorId: facts.operatorId };
      await book.opened(facts, sessionRow(facts, made, key), context);
      await this.bury(session, made);
      refuseOver(session);
      session.open(made);
    } catch (error) {
      session.endSoon('failed');
      made?.screen?.close();
      if (made !== null) await this.leave(facts, made);
      if (isFault(error)) await this.refused(facts, error, context);
      throw error;
    }
    const operator = { operator_id: facts.operatorId, username: facts.operator };
    const grant = { for: 'client', sessionId, nodeId, operator, mode: 'write', take: false, firstSecret } as const;
    return { sessionId, ticket: tickets.issue(grant) };
  }

  /** Of one that could not be opened: the recording, which is empty, goes unless the store knows of the session. */
  private async leave({ id }: SessionFacts, { recording }: SessionParts): Promise<void> {
    const isUnknown = await findTerminal(this.options.db, id).then(
      (row) => row === null,
      () => false,
    );
    await (isUnknown ? recording.discard() : recording.seal(null));
  }

  /** Of one that ended while its beginning was being stored, the end is stored too. */
  private async bury({ facts, state }: LiveSession, { recording, size }: SessionParts): Promise<void> {
    if (!isOver(state)) return;
    const transcriptSha256 = await recording.seal(null);
    const { exit } = state;
    await this.options.book.ended(facts, {
      exit,
      bytes: 0,
      size,
      recording: recording.state,
      transcriptSha256,
      by: null,
    });
  }

  private async refused(facts: SessionFacts, { code }: Fault, context: RequestContext): Promise<void> {
    if (code === 'agent_not_connected' || code === 'store_unavailable') return;
    const { actor, address, requestId } = context;
    await this.options.book.refused(facts, { reason: code, by: actor, address, requestId });
  }
}

/** Throws when it has ended before it was open: whoever asked for it, or its agent, is not to be there any more. */
function refuseOver({ state, facts }: LiveSession): void {
  if (!isOver(state)) return;
  if (state.exit.reason === 'operator_removed') throw operatorRemoved();
  throw new Fault('agent_not_approved', `agent ${facts.nodeId} is not approved any more`, {
    hint: 'see what there is: orch agents list',
  });
}
