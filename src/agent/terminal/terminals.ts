/** The agent's terminals: asks the policy, has the programs started, and keeps the orchestrator up to date about them. */
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';
import type { AgentMessageOf, OrchestratorMessageOf } from '../../wire/messages.js';
import type { SessionMark } from '../pty/process-table.js';
import { type FromHost, type OrchestratorPlace, systemMonotonic } from './host-messages.js';
import { HostProcess } from './host-process.js';
import { type Permission, permit, type TerminalSettings } from './policy.js';
import { endSurvivors, writeLiveSessions } from './survivors.js';

export type TerminalRequest = OrchestratorMessageOf<'terminal_open' | 'terminal_attach' | 'terminal_close'>;
export type TerminalReport = AgentMessageOf<'terminal_answer' | 'terminals'>;

export interface TerminalsOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  /** As they are now. */
  readonly settings: () => TerminalSettings;
  /** Writes a line where the machine's administrators look. */
  readonly authLog: (line: string) => void;
  /** The process is ended when it has had nothing to do for so long, in milliseconds. */
  readonly idleAfter?: number;
  /** A program never starts later than that after it was asked for, in milliseconds. */
  readonly startWithin?: number;
}

interface Held {
  readonly kind: 'shell' | 'exec';
  readonly operator: string;
  readonly permission: Permission | null;
  readonly mark: SessionMark | null;
  readonly isAttached: boolean;
  /** The orchestrator has been answered. */
  readonly isOpen: boolean;
  /** Its program runs, or ran. */
  readonly hasStarted: boolean;
  /** Its program has ended: it counts for no limit. */
  readonly hasEnded: boolean;
}

const IDLE_AFTER = 10 * 60 * 1000;

export class Terminals {
  private readonly options: TerminalsOptions;
  private readonly host: HostProcess;
  private readonly sessions = new Map<string, Held>();
  private readonly listeners = new Set<(report: TerminalReport) => void>();
  private place: OrchestratorPlace | null = null;
  private idle: NodeJS.Timeout | undefined;
  private stopping: Promise<void> | null = null;

  /** Ends what an agent that was killed has left. */
  constructor(options: TerminalsOptions) {
    this.options = options;
    this.host = new HostProcess({
      dataDir: options.dataDir,
      logger: options.logger,
      onMessage: (message) => this.hear(message),
      onLost: () => this.hostLost(),
    });
    this.sweep();
  }

  subscribe(listener: (report: TerminalReport) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Where sessions dial back to from now on. */
  reach(place: OrchestratorPlace): void {
    this.place = place;
  }

  /** Any session is held. */
  get isInUse(): boolean {
    return this.sessions.size > 0;
  }

  /** Every session that is held. */
  list(): AgentMessageOf<'terminals'> {
    const sessions = [...this.sessions].map(([session_id, { isAttached }]) => ({ session_id, attached: isAttached }));
    return { type: 'terminals', sessions };
  }

  handle(request: TerminalRequest): void {
    switch (request.type) {
      case 'terminal_open':
        void this.open(request);
        return;
      case 'terminal_attach':
        this.attach(request);
        return;
      case 'terminal_close':
        this.close(request.session_id);
    }
  }

  /** The settings have changed: sessions end when they are not allowed any more. */
  configure(): void {
    if (this.options.settings()['remote_terminal.enabled'] || this.sessions.size === 0) return;
    this.options.logger.warn('remote terminals were turned off: those that are open end');
    this.host.send({ do: 'end-all', reason: 'disabled' });
  }

  /** The orchestrator has turned this agent away: nobody may be on this machine through it. */
  closeAll(): void {
    for (const sessionId of [...this.sessions.keys()]) this.close(sessionId);
  }

  /** Ends all sessions, and tells their orchestrator as far as it can; resolves within a few seconds. */
  stop(): Promise<void> {
    this.stopping ??= this.stopNow();
    return this.stopping;
  }

  private async stopNow(): Promise<void> {
    clearTimeout(this.idle);
    await this.host.stop();
    this.sweep();
    for (const sessionId of [...this.sessions.keys()]) this.forget(sessionId);
  }

  private async open(request: OrchestratorMessageOf<'terminal_open'>): Promise<void> {
    const { session_id: sessionId, ticket, kind, operator } = request;
    const { place } = this;
    const startBy = systemMonotonic() + (this.options.startWithin ?? TERMINAL_LIMITS.startDeadline);
    if (this.sessions.has(sessionId)) {
      this.refuse(sessionId, new Fault('internal', `the session ${sessionId} is open already`));
      return;
    }
    const held: Held = {
      kind,
      operator,
      permission: null,
      mark: null,
      isAttached: true,
      isOpen: false,
      hasStarted: false,
      hasEnded: false,
    };
    const count = (kind: Held['kind']) =>
      [...this.sessions.values()].filter((one) => one.kind === kind && !one.hasEnded).length;
    const [shells, commands] = [count('shell'), count('exec')];
    this.sessions.set(sessionId, held);
    try {
      const permission = await permit(request, { settings: this.options.settings(), shells, commands });
      if (place === null || this.stopping !== null) throw new Fault('shutting_down', 'the agent stops');
      // Closed while the policy was asked.
      if (!this.sessions.has(sessionId)) return;
      this.sessions.set(sessionId, { ...held, permission });
      clearTimeout(this.idle);
      this.host.send({ do: 'open', sessionId, order: permission.order, dial: { place, ticket }, startBy });
    } catch (error) {
      this.sessions.delete(sessionId);
      this.refuse(sessionId, isFault(error) ? error : new Fault('internal', messageOf(error)));
    }
  }

  private close(sessionId: string): void {
    const held = this.sessions.get(sessionId);
    if (held === undefined) return;
    // Nothing has been started yet, and nothing will be.
    if (held.permission === null) this.sessions.delete(sessionId);
    else this.host.send({ do: 'close', sessionId });
  }

  private attach({ session_id: sessionId, ticket }: OrchestratorMessageOf<'terminal_attach'>): void {
    const held = this.sessions.get(sessionId);
    if (held === undefined || this.place === null) {
      this.report(this.list());
      return;
    }
    this.sessions.set(sessionId, { ...held, isAttached: true });
    this.host.send({ do: 'attach', sessionId, dial: { place: this.place, ticket } });
  }

  private hear(message: Exclude<FromHost, { is: 'log' }>): void {
    const held = this.sessions.get(message.sessionId);
    if (held === undefined) return;
    switch (message.is) {
      case 'opened':
        this.opened(message.sessionId, { ...held, isOpen: true });
        return;
      case 'started':
        this.started(message.sessionId, { ...held, mark: message.mark, hasStarted: true });
        return;
      case 'refused':
        this.sessions.delete(message.sessionId);
        this.refuse(message.sessionId, new Fault(message.code, message.message));
        this.startIdling();
        return;
      case 'lost':
        this.sessions.set(message.sessionId, { ...held, isAttached: false });
        this.report(this.list());
        return;
      case 'ended':
        this.sessions.set(message.sessionId, { ...held, hasEnded: true });
        this.writeJournal();
        return;
      case 'gone':
        this.forget(message.sessionId);
        // The orchestrator may have opened it in the same moment.
        if (!held.hasStarted) this.report(this.list());
        this.startIdling();
    }
  }

  private opened(sessionId: string, held: Held): void {
    this.sessions.set(sessionId, held);
    const { user = null, shell = null, order } = held.permission ?? {};
    const tty = held.kind === 'exec' && order !== undefined && order.size !== null ? { tty: true } : {};
    this.report({ type: 'terminal_answer', session_id: sessionId, user, shell, error: null, ...tty });
  }

  private started(sessionId: string, held: Held): void {
    const { logger, authLog } = this.options;
    this.sessions.set(sessionId, held);
    const user = held.permission?.user ?? null;
    this.writeJournal();
    const what = held.kind === 'shell' ? 'terminal' : 'command';
    logger.info(`a ${what} was opened`, { session: sessionId, operator: held.operator, user });
    authLog(`${what} opened for user ${user} by operator ${held.operator}, session ${sessionId}`);
  }

  private refuse(sessionId: string, { code, message, hint }: Fault): void {
    this.options.logger.warn('a terminal was refused', { session: sessionId, code, reason: message, hint });
    this.report({ type: 'terminal_answer', session_id: sessionId, user: null, shell: null, error: { code, message } });
  }

  private forget(sessionId: string): void {
    const held = this.sessions.get(sessionId);
    if (held === undefined) return;
    this.sessions.delete(sessionId);
    this.writeJournal();
    if (!held.hasStarted) return;
    const what = held.kind === 'shell' ? 'terminal' : 'command';
    const user = held.permission?.user;
    this.options.logger.info(`a ${what} was closed`, { session: sessionId, operator: held.operator, user });
    this.options.authLog(`${what} closed for user ${user} by operator ${held.operator}, session ${sessionId}`);
  }

  /** The sessions are lost with it. The orchestrator learns it from the list; what their programs left is ended. */
  private hostLost(): void {
    for (const [sessionId, { isOpen }] of [...this.sessions]) {
      if (!isOpen) this.refuse(sessionId, new Fault('internal', 'the process of the terminals broke down'));
    }
    this.sweep();
    for (const sessionId of [...this.sessions.keys()]) this.forget(sessionId);
    this.report(this.list());
  }

  private startIdling(): void {
    clearTimeout(this.idle);
    if (this.sessions.size > 0 || this.stopping !== null) return;
    this.idle = setTimeout(() => {
      if (this.sessions.size === 0) this.host.release();
    }, this.options.idleAfter ?? IDLE_AFTER).unref();
  }

  private writeJournal(): void {
    const { dataDir, logger } = this.options;
    const live = new Map<string, SessionMark>();
    for (const [sessionId, { mark, hasEnded }] of this.sessions) if (mark && !hasEnded) live.set(sessionId, mark);
    try {
      writeLiveSessions(dataDir, live);
    } catch (error) {
      logger.warn('the list of terminals cannot be written', { reason: messageOf(error) });
    }
  }

  private sweep(): void {
    const { dataDir, logger } = this.options;
    const count = endSurvivors(dataDir);
    if (count > 0) logger.warn('programs of lost terminals were ended', { sessions: count });
  }

  private report(report: TerminalReport): void {
    for (const listener of this.listeners) listener(report);
  }
}
