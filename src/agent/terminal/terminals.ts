/** The agent's terminals: applies the policy, starts programs in the terminal host, and reports to the orchestrator. */
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';
import { type AgentMessageOf, COMMAND_WORDS, type OrchestratorMessageOf } from '../../wire/messages.js';
import type { SessionMark } from '../pty/process-table.js';
import { type OrchestratorPlace, type SessionReport, systemMonotonic, type ToHost } from './host-messages.js';
import { HostProcess } from './host-process.js';
import { type Permission, permit, type TerminalSettings } from './policy.js';
import { killSurvivors, writeLiveSessions } from './survivors.js';

export type TerminalRequest = OrchestratorMessageOf<'terminal_open' | 'terminal_attach' | 'terminal_close'>;
export type TerminalReport = AgentMessageOf<'terminal_answer' | 'terminals'>;

export interface TerminalsOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  /** Returns the current settings. */
  readonly settings: () => TerminalSettings;
  /** Writes a line to the system's log of logins. */
  readonly authLog: (line: string) => void;
  /** Milliseconds after which an idle terminal host ends. */
  readonly idleAfter?: number;
  /** Milliseconds after the request beyond which a program never starts. */
  readonly startWithin?: number;
}

interface Held {
  readonly kind: 'shell' | 'exec';
  readonly operator: string;
  readonly permission: Permission | null;
  readonly mark: SessionMark | null;
  readonly isAttached: boolean;
  /** True when the orchestrator was answered. */
  readonly isOpen: boolean;
  /** True when the program has started. */
  readonly hasStarted: boolean;
  /** True when the program has ended, so that it counts for no limit. */
  readonly hasEnded: boolean;
}

const IDLE_AFTER = 10 * 60 * 1000;

export class Terminals {
  private readonly options: TerminalsOptions;
  private readonly host: HostProcess<ToHost, SessionReport>;
  private readonly sessions = new Map<string, Held>();
  private readonly listeners = new Set<(report: TerminalReport) => void>();
  private place: OrchestratorPlace | null = null;
  private idle: NodeJS.Timeout | undefined;
  private stopping: Promise<void> | null = null;

  /** Ends survivors of a killed agent. */
  constructor(options: TerminalsOptions) {
    this.options = options;
    this.host = new HostProcess({
      program: new URL('./terminal-host.js', import.meta.url),
      name: 'the process of the terminals',
      dataDir: options.dataDir,
      logger: options.logger,
      onMessage: (message) => this.handleHost(message),
      onLost: () => this.hostLost(),
    });
    this.sweep();
  }

  subscribe(listener: (report: TerminalReport) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Sets the address that sessions dial back to. */
  setAddress(place: OrchestratorPlace): void {
    this.place = place;
  }

  /** True while a session exists. */
  get isInUse(): boolean {
    return this.sessions.size > 0;
  }

  /** Returns the list of all sessions. */
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

  /** Applies changed settings, and ends sessions that they no longer allow. */
  configure(): void {
    if (this.options.settings()['remote_terminal.enabled'] || this.sessions.size === 0) return;
    this.options.logger.warn('remote terminals were turned off: those that are open end');
    this.host.send({ do: 'end-all', reason: 'disabled' });
  }

  /** Ends all sessions, because the orchestrator has rejected this agent. */
  closeAll(): void {
    for (const sessionId of [...this.sessions.keys()]) this.close(sessionId);
  }

  /** Ends all sessions and reports to the orchestrator. Resolves within a few seconds. */
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
      // Closed during the check of the policy.
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
    // Nothing was started, and nothing will be.
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

  private handleHost(message: SessionReport): void {
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
        // The orchestrator may have opened it at the same time.
        if (!held.hasStarted) this.report(this.list());
        this.startIdling();
    }
  }

  private opened(sessionId: string, held: Held): void {
    this.sessions.set(sessionId, held);
    const { user = null, shell = null, order } = held.permission ?? {};
    const tty = held.kind === 'exec' && order !== undefined && order.size !== null ? { tty: true } : {};
    const wait = order?.wait === true ? { wait: true } : {};
    const words = order !== undefined && order.launch.args.length >= COMMAND_WORDS ? { more_words: true } : {};
    this.report({
      type: 'terminal_answer',
      session_id: sessionId,
      user,
      shell,
      error: null,
      ...tty,
      ...wait,
      ...words,
    });
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

  /** Handles a crash of the host: reports the list without its sessions and ends their survivors. */
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
    const count = killSurvivors(dataDir);
    if (count > 0) logger.warn('programs of lost terminals were ended', { sessions: count });
  }

  private report(report: TerminalReport): void {
    for (const listener of this.listeners) listener(report);
  }
}
