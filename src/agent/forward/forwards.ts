/**
 * The agent's forwards and copies: applies the policy, starts sessions in processes of their own, and reports to the orchestrator.
 * Copies have another process than forwarded connections, because a file system may hold up their calls.
 */
import { COPY_LIMITS } from '../../copy/copy-frames.js';
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import {
  type ForwardKind,
  type ForwardTarget,
  parseHostPort,
  type SessionTarget,
  targetText,
} from '../../kernel/forward-target.js';
import type { Logger } from '../../kernel/logger.js';
import type { AgentSettings } from '../../settings/agent.js';
import type { AgentMessageOf, OrchestratorMessageOf } from '../../wire/messages.js';
import { COPY_SETTINGS, requirePermitted } from '../copy/permitted-path.js';
import type { OrchestratorPlace } from '../terminal/host-messages.js';
import { HostProcess } from '../terminal/host-process.js';
import type { ForwardGone, ToForwardHost } from './forward-host.js';

export type ForwardRequest = OrchestratorMessageOf<'forward_open' | 'forward_close'>;
export type ForwardReport = AgentMessageOf<'forward_answer'>;

type ForwardSettings = Pick<AgentSettings, 'forward.targets' | 'ssh_proxy.targets' | 'copy.read' | 'copy.write'>;

export interface ForwardsOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  /** Returns the current settings. */
  readonly settings: () => ForwardSettings;
  /** Writes a line to the system's log of logins. */
  readonly authLog: (line: string) => void;
}

interface Held {
  readonly kind: ForwardKind;
  readonly operator: string;
  readonly targets: readonly SessionTarget[];
  /** Paths that the settings permitted when a copy was opened; empty for other sessions. */
  readonly permitted: readonly string[];
  readonly room: Room;
  /** Runs while the session is to end. */
  closing?: NodeJS.Timeout;
}

/** Setting with the permitted targets of each kind. */
const SETTING = { forward: 'forward.targets', 'ssh-proxy': 'ssh_proxy.targets' } as const;
const NAMES = { forward: 'a forward', 'ssh-proxy': 'an SSH connection', copy: 'a copy' } as const;

/** Maximum sessions. The orchestrator has a setting for less. */
const MOST = 1_000;
/** Milliseconds after which a process without sessions ends. */
const IDLE_AFTER = 60_000;
/** Milliseconds that a process has to end a session. One that a file system holds up is killed then. */
const CLOSE_WITHIN = 10_000;

/** Niceness of the process of the copies: on a busy machine, its own work and keys of terminals come first. */
const COPY_NICENESS = 10;

/** A process, and when it ends without sessions. */
interface Room {
  readonly host: HostProcess<ToForwardHost, ForwardGone>;
  readonly idleAfter: number;
  idle: NodeJS.Timeout | undefined;
}

export class Forwards {
  private readonly options: ForwardsOptions;
  private readonly connections: Room;
  private readonly copies: Room;
  private readonly sessions = new Map<string, Held>();
  private readonly listeners = new Set<(report: ForwardReport) => void>();
  private place: OrchestratorPlace | null = null;
  private isStopping = false;

  constructor(options: ForwardsOptions) {
    this.options = options;
    this.connections = this.roomOf('the process of the forwards', IDLE_AFTER, 0);
    // It keeps incomplete files.
    this.copies = this.roomOf('the process of the copies', COPY_LIMITS.keep + IDLE_AFTER, COPY_NICENESS);
  }

  /** Number of open sessions. */
  get open(): number {
    return this.sessions.size;
  }

  subscribe(listener: (report: ForwardReport) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Sets the address that sessions dial back to. */
  setAddress(place: OrchestratorPlace): void {
    this.place = place;
  }

  handle(request: ForwardRequest): void {
    if (request.type === 'forward_close') this.close(request.session_id, 'the orchestrator has ended it');
    else this.begin(request);
  }

  /** Applies changed settings: ends the sessions with a target that they no longer permit. */
  configure(): void {
    const settings = this.options.settings();
    for (const [id, { kind, targets, permitted }] of [...this.sessions]) {
      try {
        const now = permitTargets(kind, targets, settings);
        // What a copy reaches is decided in its process, by the entries of its beginning.
        if (permitted.some((entry) => !now.includes(entry))) throw new Fault('copy_refused', 'an entry was removed');
      } catch {
        this.options.logger.warn(`${NAMES[kind]} ends, because its targets are no longer permitted`, { session: id });
        this.close(id, 'the settings of the agent no longer permit it');
      }
    }
  }

  /** Ends all sessions, because the orchestrator has rejected this agent. */
  closeAll(): void {
    for (const id of [...this.sessions.keys()]) this.close(id, 'the agent was rejected');
  }

  /** Ends all sessions and the process. */
  async stop(): Promise<void> {
    this.isStopping = true;
    const rooms = [this.connections, this.copies];
    for (const { idle } of rooms) clearTimeout(idle);
    await Promise.all(rooms.map(({ host }) => host.stop()));
    for (const id of [...this.sessions.keys()]) this.forget(id, 'the agent stops');
  }

  private begin({
    session_id: sessionId,
    ticket,
    operator,
    kind,
    targets,
  }: OrchestratorMessageOf<'forward_open'>): void {
    const { place } = this;
    const { logger, authLog, settings } = this.options;
    try {
      if (this.sessions.has(sessionId)) throw new Fault('internal', `the session ${sessionId} is open already`);
      const permitted = permitTargets(kind, targets, settings());
      if (this.sessions.size >= MOST) throw new Fault('forward_limit', `this agent has ${MOST} forwards open`);
      if (place === null || this.isStopping) throw new Fault('shutting_down', 'the agent stops');
      const room = kind === 'copy' ? this.copies : this.connections;
      clearTimeout(room.idle);
      this.sessions.set(sessionId, { kind, operator, targets, permitted, room });
      room.host.send({ do: 'open', sessionId, targets, permitted, dial: { place, ticket } });
    } catch (error) {
      const { code, message } = isFault(error) ? error : new Fault('internal', messageOf(error));
      logger.warn(`${NAMES[kind]} was refused`, { session: sessionId, operator, code, reason: message });
      this.report({ type: 'forward_answer', session_id: sessionId, error: { code, message } });
      return;
    }
    const where = targets
      .map((target) => ('copy' in target ? `${target.copy} ${target.at}` : targetText(target)))
      .join(' ');
    logger.info(`${NAMES[kind]} was opened`, { session: sessionId, operator, kind, targets: where });
    authLog(`${kind} ${kind === 'copy' ? '' : 'to '}${where} opened by operator ${operator}, session ${sessionId}`);
    this.report({ type: 'forward_answer', session_id: sessionId, error: null });
  }

  private close(sessionId: string, reason: string): void {
    const held = this.sessions.get(sessionId);
    if (held === undefined) return;
    held.closing ??= setTimeout(() => held.room.host.kill(), CLOSE_WITHIN);
    held.room.host.send({ do: 'close', sessionId, reason });
  }

  private forget(sessionId: string, reason: string): void {
    const held = this.sessions.get(sessionId);
    if (held === undefined) return;
    const { kind, operator, room, closing } = held;
    clearTimeout(closing);
    this.sessions.delete(sessionId);
    this.options.logger.info(`${NAMES[kind]} was closed`, { session: sessionId, operator, reason });
    this.options.authLog(`${kind} closed by operator ${operator}, session ${sessionId}`);
    if (this.isStopping || [...this.sessions.values()].some((other) => other.room === room)) return;
    clearTimeout(room.idle);
    room.idle = setTimeout(() => room.host.release(), room.idleAfter).unref();
  }

  private roomOf(name: string, idleAfter: number, niceness: number): Room {
    const { dataDir, logger } = this.options;
    const host = new HostProcess<ToForwardHost, ForwardGone>({
      ...{ name, dataDir, logger, ...(niceness > 0 && { niceness }) },
      program: new URL('./forward-host.js', import.meta.url),
      onMessage: ({ sessionId, reason }) => this.forget(sessionId, reason),
      onLost: () => {
        const message = `${name} broke down`;
        for (const [id, held] of [...this.sessions]) {
          if (held.room.host !== host) continue;
          this.forget(id, message);
          // It was answered before the process could have failed.
          this.report({ type: 'forward_answer', session_id: id, error: { code: 'internal', message } });
        }
      },
    });
    return { host, idleAfter, idle: undefined };
  }

  private report(report: ForwardReport): void {
    for (const listener of this.listeners) listener(report);
  }
}

/**
 * Throws `forward_refused` or `copy_refused` with the first target that the settings do not permit. Returns the permitted paths of
 * copies, with which their process decides about real paths.
 */
function permitTargets(
  kind: ForwardKind,
  targets: readonly SessionTarget[],
  settings: ForwardSettings,
): readonly string[] {
  const paths = targets.flatMap((target) => ('copy' in target ? [target] : []));
  const places = targets.flatMap((target) => ('copy' in target ? [] : [target]));
  if (kind === 'copy') {
    const [first] = paths;
    if (first === undefined || places.length > 0 || paths.some(({ copy }) => copy !== first.copy)) throw mixed();
    const permitted = settings[COPY_SETTINGS[first.copy]];
    for (const path of paths) requirePermitted(path, permitted);
    return permitted;
  }
  if (paths.length > 0) throw mixed();
  const name = SETTING[kind];
  const permitted = settings[name];
  const refused = places.find((target) => !permitted.some((entry) => permits(entry, target)));
  if (refused === undefined) return [];
  const what = permitted.length === 0 ? 'no targets' : `no connections to ${targetText(refused)}`;
  const use = kind === 'forward' ? 'of orch forward' : 'of orch ssh-proxy';
  throw new Fault(
    'forward_refused',
    `this agent permits ${what} ${use}; ${name} would have to name ${targetText(refused)}`,
  );
}

const mixed = (): Fault => new Fault('protocol_violation', 'the peer sent targets of several kinds');

/** Compares names without case, and resolves none: an entry with a name permits exactly that name. */
function permits(entry: string, target: ForwardTarget): boolean {
  if ('path' in target) return entry === target.path;
  const parsed = parseHostPort(entry);
  if (parsed === null) return false;
  const isHost = parsed.host === '*' || parsed.host.toLowerCase() === target.host.toLowerCase();
  return isHost && (parsed.port === '*' || parsed.port === target.port);
}
