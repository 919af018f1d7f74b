/** The service of terminal sessions: opens, attaches to, lists and closes them, and restores them after a restart. */

import type { TerminalDetail, TerminalSession } from '../../src/contract/terminal.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { Service } from '../../src/kernel/service.js';
import type { ExitReason } from '../../src/terminal/exit.js';
import { TERMINAL_CLOSE } from '../../src/terminal/limits.js';
import type { AgentHello, TerminalMode } from '../../src/terminal/notes.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import { resolveOperatorId } from '../auth/operator-store.js';
import type { Core } from '../core/core.js';
import type { RequestContext } from '../core/domain-event.js';
import { mayUse, operatorRemoved, rightTo } from './eligibility.js';
import { sessionDetail, sessionNotFound, sessionOver, sessionView } from './list-sessions.js';
import { LiveSessions, type TerminalLink, type TerminalRules } from './live-sessions.js';
import { type Caller, type ExecRequest, type Opened, SessionOpener, type ShellRequest } from './open-session.js';
import type { Recordings } from './recordings/recorder.js';
import type { LiveSession } from './session/live-session.js';
import type { JoinRequest } from './session/participants.js';
import type { ResumeSecrets } from './session/resume.js';
import { exitOf, factsOfRow, type SessionFacts } from './session/session-core.js';
import { hasEnded } from './session/session-lifecycle.js';
import type { SessionFactory } from './session-factory.js';
import {
  findTerminal,
  listActiveTerminals,
  listTerminals,
  type SessionStore,
  type TerminalPage,
  type TerminalRow,
} from './session-store.js';
import { StartRequests } from './start-requests.js';
import type { TerminalSocket } from './terminal-socket.js';
import type { AgentGrant, Tickets } from './tickets.js';

interface TerminalsOptions extends Pick<Core, 'clock' | 'db' | 'logger' | 'newId'> {
  readonly store: SessionStore;
  readonly factory: SessionFactory;
  readonly recordings: Pick<Recordings, 'locate'>;
  readonly tickets: Tickets;
  readonly link: TerminalLink;
  readonly rules: () => TerminalRules;
  readonly resumeSecrets: ResumeSecrets;
  /** Milliseconds that an agent has to answer a request to start a program. */
  readonly timeoutMs?: number;
}

interface AttachRequest {
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
  private readonly opening: StartRequests;
  private readonly opener: SessionOpener;
  /** Clients with a valid ticket that are not served yet. */
  private readonly joins = new Set<JoinRequest>();
  private timer: NodeJS.Timeout | undefined;
  private restoring: Promise<unknown> = Promise.resolve();
  private isStopping = false;

  constructor(options: TerminalsOptions) {
    this.options = options;
    const mayType = (facts: SessionFacts, operatorId: string) => this.mayTakePart({ facts }, operatorId, 'write');
    this.live = new LiveSessions({ ...options, mayType });
    this.opening = new StartRequests({ link: options.link, timeoutMs: options.timeoutMs ?? PATIENCE });
    this.opener = new SessionOpener({ ...options, live: this.live, startRequests: this.opening });
  }

  /** Restores the sessions that were open when the orchestrator ended. */
  async start(): Promise<void> {
    const { done } = await restoreSessions({ ...this.options, live: this.live });
    this.restoring = done;
    this.timer = setInterval(() => this.tick(), TICK);
  }

  /** Disconnects clients and agents and releases recordings. Programs continue. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.leave();
    await this.restoring;
    await this.live.release();
  }

  /** Refuses new requests and tells all peers to reconnect, because the orchestrator stops. */
  leave(): void {
    this.isStopping = true;
    this.live.leave();
  }

  /** Number of open sessions. */
  get active(): number {
    return this.live.active;
  }

  /** Resolves when all restored sessions can be served. */
  async restored(): Promise<void> {
    await this.restoring;
  }

  isActive(sessionId: string): boolean {
    return this.live.get(sessionId) !== undefined;
  }

  /** Opens a shell. Throws as `SessionOpener.openShell`, and `shutting_down`. */
  async openShell(request: ShellRequest, context: RequestContext): Promise<Opened> {
    this.refuseWhileStopping();
    return this.opener.openShell(request, context);
  }

  /** Starts a command. Throws as `SessionOpener.exec`, and `shutting_down`. */
  async exec(request: ExecRequest, context: RequestContext): Promise<Opened> {
    this.refuseWhileStopping();
    return this.opener.exec(request, context);
  }

  /** Returns a ticket to attach. Throws `terminal_not_found`, `terminal_over`, `terminal_pen_taken`. */
  async attach(sessionId: string, request: AttachRequest, context: RequestContext): Promise<string> {
    const { operator, mode, take } = request;
    const { logger, tickets } = this.options;
    const session = this.live.get(sessionId);
    if (session === undefined || !session.isServing(operator.operator_id)) {
      throw sessionOver(await this.require(sessionId));
    }
    if (!(await this.mayTakePart(session, operator.operator_id, mode))) throw operatorRemoved();
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

  /** Ends a session. Throws `terminal_not_found`, `terminal_over`. */
  async close(sessionId: string, context: RequestContext): Promise<void> {
    await this.restoring;
    const session = this.live.get(sessionId);
    if (session?.state.phase !== 'active') throw sessionOver(await this.require(sessionId));
    await session.end(exitOf('closed'), context);
  }

  /** Returns where a session is and who opened it. Throws `terminal_not_found`. */
  async place(sessionId: string): Promise<Pick<TerminalRow, 'kind' | 'node_id' | 'operator_id'>> {
    return this.require(sessionId);
  }

  /** Lists sessions, newest first. Throws `invalid_filter` when several removed operators have the given name. */
  async list(page: TerminalPage): Promise<TerminalSession[]> {
    const { db } = this.options;
    const operator = page.operator == null ? null : await resolveOperatorId(db, page.operator);
    const rows = await listTerminals(db, { ...page, operator });
    return rows.map((row) => sessionView(row, this.live.get(row.session_id)));
  }

  /** Returns one session. Throws `terminal_not_found`. */
  async get(sessionId: string): Promise<TerminalDetail> {
    const row = await this.require(sessionId);
    const transcript = row.transcript === null ? null : await this.options.recordings.locate(row.transcript);
    return sessionDetail(row, this.live.get(sessionId), transcript);
  }

  /** Handles a message of an approved agent about terminals. */
  receive(nodeId: NodeId, message: AgentMessageOf<'terminal_answer' | 'terminals'>): void {
    if (message.type === 'terminals') {
      // Sessions of before a restart are unknown until then.
      void this.restoring.then(() => this.reconcile(nodeId, message));
      return;
    }
    const { session_id: id } = message;
    const isAwaited = this.opening.answered(nodeId, message);
    if (message.error !== null) return;
    const session = this.live.get(id);
    if (!isAwaited || session === undefined) this.live.dismiss(nodeId, id);
    else session.isHeld = true;
  }

  /** Handles the loss of an agent link. Terminal sockets may survive it. */
  disconnected(nodeId: NodeId): void {
    this.opening.failAgent(nodeId);
  }

  /** Ends everything of an agent that was rejected or removed. */
  async revoked(nodeId: NodeId): Promise<void> {
    this.opening.failAgent(nodeId);
    this.options.tickets.revoke((grant) => grant.nodeId === nodeId);
    await this.endAll((session) => session.facts.nodeId === nodeId, 'agent_rejected');
  }

  /** Ends everything of an operator that was removed. */
  async operatorRemoved(operatorId: string): Promise<void> {
    this.options.tickets.revoke((grant) => grant.for === 'client' && grant.operator.operator_id === operatorId);
    for (const { grant, socket } of this.joins) if (grant.operator.operator_id === operatorId) revoke(socket);
    for (const session of this.live.all) session.revoke(operatorId);
    await this.endAll((session) => session.facts.operatorId === operatorId, 'operator_removed');
  }

  /** Ends what operators may no longer do on the agent, or, with null, on any. */
  async rightsChanged(nodeId: string | null): Promise<void> {
    for (const session of this.live.all) {
      const { facts } = session;
      if (nodeId !== null && facts.nodeId !== nodeId) continue;
      for (const { operatorId, mode } of session.attached) {
        if (!(await this.mayTakePart(session, operatorId, mode))) session.revoke(operatorId);
      }
      if (hasEnded(session.state) || (await this.mayTakePart(session, facts.operatorId, 'write'))) continue;
      await session.end(exitOf('operator_removed'));
    }
  }

  /** Reports whether the agent has sessions here, so that its socket is accepted. */
  expects(nodeId: NodeId): boolean {
    return !this.isStopping && this.live.all.some(({ facts }) => facts.nodeId === nodeId);
  }

  /** Takes the socket of an agent with a valid ticket. Returns its session, or null. */
  attachAgent({ sessionId }: AgentGrant, socket: TerminalSocket, hello: AgentHello): LiveSession | null {
    const session = this.live.get(sessionId);
    session?.attachAgent(socket, hello);
    return session ?? null;
  }

  find(sessionId: string): LiveSession | null {
    return this.live.get(sessionId) ?? null;
  }

  /** Serves a client with a valid ticket. */
  join(session: LiveSession, request: JoinRequest): void {
    this.joins.add(request);
    this.serve(session, request)
      .catch((error: unknown) => {
        const { id: session_id } = session.facts;
        this.options.logger.error('a terminal could not be attached to', { session_id, reason: messageOf(error) });
        request.socket.terminate();
      })
      .finally(() => this.joins.delete(request));
  }

  /** A removal of the operator before this is found in the store, a later one closes the joins. */
  private async serve(session: LiveSession, request: JoinRequest): Promise<void> {
    const { operator_id: operatorId } = request.grant.operator;
    if (await this.mayTakePart(session, operatorId, request.grant.mode)) await session.join(request);
    else revoke(request.socket);
  }

  /** Aligns the sessions of an agent with those here. @param list all sessions of the agent */
  private reconcile(nodeId: NodeId, list: AgentMessageOf<'terminals'>): void {
    const { live } = this;
    const { link, tickets } = this.options;
    const there = new Set(list.sessions.map(({ session_id }) => session_id));
    for (const { session_id: id, attached } of list.sessions) {
      const session = live.get(id);
      if (session === undefined || session.facts.nodeId !== nodeId || hasEnded(session.state)) {
        live.dismiss(nodeId, id);
      } else if (!attached || !session.hasAgent) {
        const ticket = tickets.issue({ for: 'agent', sessionId: id, nodeId });
        link.send(nodeId, [{ type: 'terminal_attach', session_id: id, ticket }]);
      }
    }
    for (const session of live.all) {
      const { facts, isHeld, state } = session;
      if (facts.nodeId !== nodeId || there.has(facts.id)) continue;
      // Also one that is still being recorded and stored, if the agent has answered for it before.
      if (isHeld && !hasEnded(state)) session.endInBackground('agent_lost');
    }
  }

  private mayTakePart({ facts }: Pick<LiveSession, 'facts'>, operatorId: string, mode: TerminalMode): Promise<boolean> {
    return mayUse(this.options, operatorId, rightTo(facts, operatorId, mode), facts.nodeId);
  }

  private refuseWhileStopping(): void {
    if (this.isStopping) throw new Fault('shutting_down', 'the orchestrator is stopping', { hint: 'try again soon' });
  }

  private async endAll(isMeant: (session: LiveSession) => boolean, reason: ExitReason): Promise<void> {
    await this.restoring;
    const meant = this.live.all.filter((session) => isMeant(session) && !hasEnded(session.state));
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

const revoke = (socket: TerminalSocket): void =>
  socket.close(TERMINAL_CLOSE.revoked, 'you are no longer allowed to use this terminal');

interface RestoreOptions extends Pick<Core, 'db'> {
  readonly live: LiveSessions;
  readonly factory: SessionFactory;
}

/** Restores the stored sessions. Resolves when all exist; `done` resolves when they can be served. */
async function restoreSessions(options: RestoreOptions): Promise<{ readonly done: Promise<unknown> }> {
  const rows = await listActiveTerminals(options.db);
  return { done: Promise.all(rows.map((row) => restore(row, options))) };
}

async function restore(row: TerminalRow, { live, factory: parts }: RestoreOptions): Promise<void> {
  const { resume_hash: hash, resume_operator_id: operatorId } = row;
  const resume = hash === null || operatorId === null ? null : { hash, operatorId };
  const session = live.add(factsOfRow(row), resume);
  const made = await parts.restore(session, row);
  if (!hasEnded(session.state)) return session.open(made);
  made.screen?.close();
  await made.recording.release();
}
