/** Remote terminals and commands: opens, lists, attaches to and closes them, and keeps them over the life of the orchestrator. */
import type { TerminalDetail, TerminalSession } from '../../src/contract/terminal.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { NewId, NodeId } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Service } from '../../src/kernel/service.js';
import type { ExitReason } from '../../src/terminal/exit.js';
import { TERMINAL_CLOSE } from '../../src/terminal/limits.js';
import type { AgentHello, TerminalMode } from '../../src/terminal/notes.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import { operatorIdMeant } from '../auth/operator-store.js';
import type { RequestContext } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import { isActiveOperator, requireOperator } from './active-operator.js';
import { LiveSessions } from './live-sessions.js';
import { Opening } from './opening.js';
import type { PartsMaker } from './parts-maker.js';
import { reconcile } from './reconcile.js';
import type { Recordings } from './recordings/recorder.js';
import { restoreSessions } from './restore-sessions.js';
import type { Arrival } from './session/joining.js';
import type { LiveSession } from './session/live-session.js';
import type { ResumeSecrets } from './session/resume-secrets.js';
import { exitOf } from './session/session-core.js';
import { isOver } from './session/session-state.js';
import type { SessionBook } from './session-book.js';
import { sessionNotFound, sessionOver } from './session-faults.js';
import { type Caller, type ExecRequest, type Opened, SessionOpener, type ShellRequest } from './session-opener.js';
import { findTerminal, listTerminals, type TerminalPage, type TerminalRow } from './session-store.js';
import { sessionDetail, sessionView } from './session-view.js';
import type { TerminalLink } from './terminal-link.js';
import type { TerminalRules } from './terminal-rules.js';
import type { TerminalSocket } from './terminal-socket.js';
import type { AgentGrant, Tickets } from './tickets.js';

export interface TerminalsOptions {
  readonly db: Queryable;
  readonly book: SessionBook;
  readonly parts: PartsMaker;
  readonly recordings: Pick<Recordings, 'locate'>;
  readonly tickets: Tickets;
  readonly link: TerminalLink;
  readonly rules: () => TerminalRules;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly resumeSecrets: ResumeSecrets;
  readonly logger: Logger;
  /** How long an agent has to answer, in milliseconds. */
  readonly patience?: number;
}

export interface AttachRequest {
  readonly operator: Caller;
  readonly mode: TerminalMode;
  readonly take: boolean;
}

const PATIENCE = 15_000;
const TICK = 1_000;

export class Terminals implements Service {
  readonly name = 'terminals';
  private readonly options: TerminalsOptions;
  private readonly live: LiveSessions;
  private readonly opening: Opening;
  private readonly opener: SessionOpener;
  /** Those who have come with a ticket and are not served yet. */
  private readonly arrivals = new Set<Arrival>();
  private timer: NodeJS.Timeout | undefined;
  private restoring: Promise<unknown> = Promise.resolve();
  private isStopping = false;

  constructor(options: TerminalsOptions) {
    this.options = options;
    this.live = new LiveSessions(options);
    this.opening = new Opening({ link: options.link, patience: options.patience ?? PATIENCE });
    this.opener = new SessionOpener({ ...options, live: this.live, opening: this.opening });
  }

  /** Takes up the sessions that were open when the orchestrator ended. */
  async start(): Promise<void> {
    const { done } = await restoreSessions({ ...this.options, live: this.live });
    this.restoring = done;
    this.timer = setInterval(() => this.tick(), TICK);
  }

  /** Programs go on, everybody is told to come back, recordings are let go of. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.leave();
    await this.restoring;
    await this.live.release();
  }

  /** The orchestrator is about to stop: nobody is served any more. */
  leave(): void {
    this.isStopping = true;
    this.live.leave();
  }

  /** Sessions that are open now. */
  get active(): number {
    return this.live.active;
  }

  /** Resolves when all sessions of before the start can be served again. */
  async restored(): Promise<void> {
    await this.restoring;
  }

  isActive(sessionId: string): boolean {
    return this.live.get(sessionId) !== undefined;
  }

  /** Throws what `SessionOpener.openShell` does, and `shutting_down`. */
  async openShell(request: ShellRequest, context: RequestContext): Promise<Opened> {
    this.refuseWhileStopping();
    return this.opener.openShell(request, context);
  }

  /** Throws what `SessionOpener.exec` does, and `shutting_down`. */
  async exec(request: ExecRequest, context: RequestContext): Promise<Opened> {
    this.refuseWhileStopping();
    return this.opener.exec(request, context);
  }

  /** A ticket. Throws `terminal_not_found`, `terminal_over`, `terminal_pen_taken`. */
  async attach(sessionId: string, request: AttachRequest, context: RequestContext): Promise<string> {
    const { operator, mode, take } = request;
    const { logger, tickets } = this.options;
    await requireOperator(this.options.db, operator.operator_id);
    const session = this.live.get(sessionId);
    if (session === undefined || !session.isServing(operator.operator_id)) {
      throw sessionOver(await this.require(sessionId));
    }
    if (mode === 'write' && !take && session.writer !== null) {
      throw new Fault('terminal_pen_taken', `${session.writer} types in this session`, {
        hint: 'watch it, ask for the pen with ~w, or take it with --take',
      });
    }
    const { requestId: request_id } = context;
    logger.debug('a ticket for a terminal was given', { session_id: sessionId, request_id });
    const { operator_id, username } = operator;
    const { nodeId } = session.facts;
    const attacher = { operator_id, username };
    return tickets.issue({ for: 'client', sessionId, nodeId, operator: attacher, mode, take, firstSecret: null });
  }

  /** Throws `terminal_not_found`, `terminal_over`. */
  async close(sessionId: string, context: RequestContext): Promise<void> {
    await this.restoring;
    const session = this.live.get(sessionId);
    if (session?.state.phase !== 'active') throw sessionOver(await this.require(sessionId));
    await session.end(exitOf('closed'), context);
  }

  /** Newest first. Throws `invalid_filter` for the name of several removed operators. */
  async list(page: TerminalPage): Promise<TerminalSession[]> {
    const { db } = this.options;
    const operator = page.operator == null ? null : await operatorIdMeant(db, page.operator);
    const rows = await listTerminals(db, { ...page, operator });
    return rows.map((row) => sessionView(row, this.live.get(row.session_id)));
  }

  /** Throws `terminal_not_found`. */
  async get(sessionId: string): Promise<TerminalDetail> {
    const row = await this.require(sessionId);
    const transcript = row.transcript === null ? null : await this.options.recordings.locate(row.transcript);
    return sessionDetail(row, this.live.get(sessionId), transcript);
  }

  /** What an approved agent says about terminals. */
  receive(nodeId: NodeId, message: AgentMessageOf<'terminal_answer' | 'terminals'>): void {
    if (message.type === 'terminals') {
      // What an orchestrator before this one has left is known only then.
      void this.restoring.then(() => reconcile(nodeId, message, { ...this.options, live: this.live }));
      return;
    }
    const isAwaited = this.opening.answered(nodeId, message);
    if (!isAwaited && message.error === null) this.live.dismiss(nodeId, message.session_id);
  }

  /** The link is gone; sockets of terminals may live on. */
  disconnected(nodeId: NodeId): void {
    this.opening.lost(nodeId);
  }

  /** The agent was rejected or removed. */
  async revoked(nodeId: NodeId): Promise<void> {
    this.opening.lost(nodeId);
    this.options.tickets.revoke((grant) => grant.nodeId === nodeId);
    await this.endAll((session) => session.facts.nodeId === nodeId, 'agent_rejected');
  }

  /** The operator was removed: nothing of theirs stays open. */
  async operatorRemoved(operatorId: string): Promise<void> {
    this.options.tickets.revoke((grant) => grant.for === 'client' && grant.operator.operator_id === operatorId);
    for (const { grant, socket } of this.arrivals) if (grant.operator.operator_id === operatorId) revoke(socket);
    for (const session of this.live.all) session.revoke(operatorId);
    await this.endAll((session) => session.facts.operatorId === operatorId, 'operator_removed');
  }

  /** Whether the agent has any business here: only then is it worth a socket. */
  expects(nodeId: NodeId): boolean {
    return !this.isStopping && this.live.all.some(({ facts }) => facts.nodeId === nodeId);
  }

  /** An agent has dialled back with a ticket that is good. */
  agentCame({ sessionId }: AgentGrant, socket: TerminalSocket, hello: AgentHello): LiveSession | null {
    const session = this.live.get(sessionId);
    session?.agentCame(socket, hello);
    return session ?? null;
  }

  find(sessionId: string): LiveSession | null {
    return this.live.get(sessionId) ?? null;
  }

  /** Serves an operator who has come with a ticket that is good. */
  join(session: LiveSession, arrival: Arrival): void {
    this.arrivals.add(arrival);
    this.serve(session, arrival)
      .catch((error: unknown) => {
        const { id: session_id } = session.facts;
        this.options.logger.error('a terminal could not be attached to', { session_id, reason: messageOf(error) });
        arrival.socket.terminate();
      })
      .finally(() => this.arrivals.delete(arrival));
  }

  /** A removal before this is found in the store, one after it among the arrivals. */
  private async serve(session: LiveSession, arrival: Arrival): Promise<void> {
    const { operator_id: operatorId } = arrival.grant.operator;
    if (await isActiveOperator(this.options.db, operatorId)) await session.join(arrival);
    else revoke(arrival.socket);
  }

  private refuseWhileStopping(): void {
    if (this.isStopping) throw new Fault('shutting_down', 'the orchestrator is stopping', { hint: 'try again soon' });
  }

  private async endAll(isMeant: (session: LiveSession) => boolean, reason: ExitReason): Promise<void> {
    await this.restoring;
    const meant = this.live.all.filter((session) => isMeant(session) && !isOver(session.state));
    await Promise.all(meant.map((session) => session.end(exitOf(reason))));
  }

  private async require(sessionId: string): Promise<TerminalRow> {
    const row = await findTerminal(this.options.db, sessionId);
    if (row === null) throw sessionNotFound(sessionId);
    return row;
  }

  private tick(): void {
    this.options.tickets.prune();
    this.live.tick();
  }
}

const revoke = (socket: TerminalSocket): void => socket.close(TERMINAL_CLOSE.revoked, 'you may not use this any more');
