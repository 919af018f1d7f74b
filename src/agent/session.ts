/** One connection to the orchestrator, from hello to its end: validated messages both ways, and a heartbeat. */
import { createHash } from 'node:crypto';
import type { RawData, WebSocket } from 'ws';
import type { Clock } from '../kernel/clock.js';
import { assertNever, Fault, messageOf } from '../kernel/fault.js';
import type { Logger } from '../kernel/logger.js';
import type { MetricsSample } from '../kernel/schema.js';
import { PROTOCOL_VERSION, VERSION } from '../kernel/version.js';
import { encode, orchestratorDecoder, UnknownMessage } from '../wire/codec.js';
import type { TokenVerdict } from '../wire/enrolment-token.js';
import { CLOSE, LINK_LIMITS } from '../wire/limits.js';
import type { AgentMessage, AgentMessageOf, OrchestratorMessage, OrchestratorMessageOf } from '../wire/messages.js';
import { RunAssembly } from '../wire/parts.js';
import { commonVersion } from '../wire/version.js';
import type { RunEngine } from './engine/run-engine.js';
import type { OwnReport } from './facts/own-facts.js';
import { PackageReader } from './facts/package-versions.js';
import type { MachineFacts } from './facts.js';
import { featuresHere } from './features.js';
import type { ForwardRequest, Forwards } from './forward/forwards.js';
import type { TerminalRequest, Terminals } from './terminal/terminals.js';
import type { Upgrades } from './upgrade/upgrades.js';

export interface SessionOptions {
  /** Open and paused. */
  readonly socket: WebSocket;
  readonly engine: RunEngine;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called at the start, every `factsInterval`, and when the orchestrator asks. */
  readonly facts: () => MachineFacts;
  /** Called at the same times. Returns the facts of one's own; reads all of them again when `isFresh`. */
  readonly ownFacts?: (isFresh: boolean) => Promise<OwnReport>;
  /** Reads the versions of packages that the orchestrator asks for [default: from the package manager]. */
  readonly packages?: Pick<PackageReader, 'hasChanged' | 'read'>;
  /** Returns the newest measurement, or null. */
  readonly sample: () => Promise<MetricsSample | null>;
  /** Without it every terminal is refused. */
  readonly terminals?: Pick<Terminals, 'handle' | 'list' | 'subscribe'> | undefined;
  /** Without it every forward is refused. */
  readonly forwards?: Pick<Forwards, 'handle' | 'subscribe'> | undefined;
  /** Without it requests for upgrades are ignored. */
  readonly upgrades?: Pick<Upgrades, 'handle' | 'report' | 'subscribe'>;
  readonly pace?: Pace;
  /** Token for hello, or null. */
  readonly enrolmentToken?: string | null;
  /** Returns the loss of the journal for hello; null when nothing was lost. */
  readonly journalLoss?: () => string | null;
  /** Called when the orchestrator has received the loss. */
  readonly onLossReported?: () => void;
  readonly onTokenVerdict?: (verdict: TokenVerdict) => void;
  /** `reason` says why an approved agent is pending again; null otherwise. */
  readonly onStatus: (status: 'pending' | 'approved', name: string | null, reason: string | null) => void;
}

/** Intervals of a connection in milliseconds. */
interface Pace {
  readonly pingInterval: number;
  readonly deadAfter: number;
  readonly factsInterval: number;
}

/** Why a connection ended. */
export interface SessionEnd {
  readonly code: number;
  readonly reason: string;
}

/** Milliseconds. */
const CLOSE_WITHIN = 2_000;
const PACE: Pace = {
  pingInterval: LINK_LIMITS.pingInterval,
  deadAfter: LINK_LIMITS.deadAfter,
  factsInterval: 60_000,
};

/** Serves one connection; resolves when it has ended. `signal` ends it from this side. */
export function runSession(options: SessionOptions, signal: AbortSignal): Promise<SessionEnd> {
  return new Session(options).run(signal);
}

class Session {
  private readonly options: SessionOptions;
  private readonly pace: Pace;
  private readonly decode = orchestratorDecoder();
  private approved = false;
  private assembly: RunAssembly | null = null;
  private lastMessageAt: number;
  private facts: MachineFacts;
  /** Facts of one's own, which are read while the connection is approved. */
  private own: Promise<OwnReport>;
  /** Hash of the facts that were sent, without volatile ones; null before the first. */
  private sentFacts: string | null = null;
  private readonly packages: Pick<PackageReader, 'hasChanged' | 'read'>;
  private ended: SessionEnd | null = null;
  private reportsLoss = false;

  constructor(options: SessionOptions) {
    this.options = options;
    this.pace = options.pace ?? PACE;
    this.lastMessageAt = options.clock.monotonic();
    this.packages = options.packages ?? new PackageReader();
    this.facts = options.facts();
    this.own = this.readOwn(true);
  }

  async run(signal: AbortSignal): Promise<SessionEnd> {
    const { socket, engine, forwards, terminals, upgrades } = this.options;
    const closed = new Promise<SessionEnd>((resolve) => {
      socket.on('close', (code, reason) => resolve(this.ended ?? { code, reason: reason.toString() }));
    });
    socket.on('message', (data, binary) => this.receive(data, binary));
    socket.on('ping', () => this.recordMessage());
    socket.on('pong', () => this.recordMessage());
    socket.on('error', () => undefined);
    const heartbeat = setInterval(() => this.beat(), this.pace.pingInterval);
    const watch = setInterval(() => this.refreshFacts(), this.pace.factsInterval);
    const unsubscribe = engine.subscribe((report) => {
      if (this.approved) this.send(report);
    });
    const unsubscribeTerminals = terminals?.subscribe((report) => {
      if (this.approved) this.send(report);
    });
    const unsubscribeForwards = forwards?.subscribe((report) => {
      if (this.approved) this.send(report);
    });
    const unsubscribeUpgrades = upgrades?.subscribe((report) => {
      if (this.approved) this.send(report);
    });
    const abort = () => this.end(CLOSE.normal, 'the agent stops');
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    this.hello();
    socket.resume();
    try {
      return await closed;
    } finally {
      clearInterval(heartbeat);
      clearInterval(watch);
      unsubscribe();
      unsubscribeTerminals?.();
      unsubscribeForwards?.();
      unsubscribeUpgrades?.();
      signal.removeEventListener('abort', abort);
      engine.disconnected();
    }
  }

  private hello(): void {
    const { enrolmentToken: token, journalLoss } = this.options;
    const loss = journalLoss?.() ?? null;
    this.reportsLoss = loss !== null;
    this.send({
      type: 'hello',
      protocol_version: PROTOCOL_VERSION,
      agent_version: VERSION,
      hostname: this.facts.attributes.hostname ?? '',
      attributes: { ...this.facts.attributes },
      ...(token == null ? {} : { enrolment_token: token }),
      ...(loss === null ? {} : { journal_loss: loss }),
    });
  }

  private send(message: AgentMessage): void {
    const { socket } = this.options;
    if (socket.readyState === socket.OPEN) socket.send(encode(message));
  }

  private recordMessage(): void {
    this.lastMessageAt = this.options.clock.monotonic();
  }

  /** Pings only after a silence: the orchestrator pings all agents at once, so that a large fleet does not wake it all the time. */
  private beat(): void {
    const { socket, clock } = this.options;
    const silence = clock.monotonic() - this.lastMessageAt;
    if (silence > this.pace.deadAfter) {
      this.ended = { code: CLOSE.goingAway, reason: 'the orchestrator was silent for too long' };
      socket.terminate();
    } else if (socket.readyState === socket.OPEN && silence > 1.5 * this.pace.pingInterval) {
      socket.ping();
    }
  }

  private refreshFacts(): void {
    const { attributes: before } = this.facts;
    this.facts = this.options.facts();
    const { attributes } = this.facts;
    const isChanged = JSON.stringify(attributes) !== JSON.stringify(before);
    if (isChanged && this.approved) this.send({ type: 'attributes', attributes: { ...attributes } });
    this.own = this.readOwn(false);
    if (this.approved) void this.reportFacts();
    if (this.approved && this.packages.hasChanged()) void this.reportPackages();
  }

  private readOwn(isFresh: boolean): Promise<OwnReport> {
    return this.options.ownFacts?.(isFresh) ?? Promise.resolve({ own: {}, problem: null });
  }

  /** Reports the facts if they have changed. @param requestId request that is answered in any case */
  private async reportFacts(requestId?: number): Promise<void> {
    const { own, problem } = await this.own;
    const { parts, volatile } = this.facts;
    const lasting = { parts, own, problem };
    const hash = createHash('sha256').update(JSON.stringify(lasting)).digest('base64');
    if (hash === this.sentFacts && requestId === undefined) return;
    this.sentFacts = hash;
    const message = { type: 'facts', ...lasting, volatile } as const;
    this.send(requestId === undefined ? message : { ...message, request_id: requestId });
  }

  private answerFacts(requestId: number): void {
    this.facts = this.options.facts();
    this.own = this.readOwn(true);
    void this.reportFacts(requestId);
  }

  private async reportPackages(request?: OrchestratorMessageOf<'packages_request'>): Promise<void> {
    const report = { type: 'packages', ...(await this.packages.read(request?.names)) } as const;
    this.send(request === undefined ? report : { ...report, request_id: request.request_id });
  }

  private receive(data: RawData, binary: boolean): void {
    if (this.ended !== null) return;
    this.recordMessage();
    try {
      if (binary) throw new Fault('protocol_violation', 'the orchestrator sent a binary frame');
      const message = this.decode(data.toString());
      if (message instanceof UnknownMessage) this.options.logger.debug('ignored a message', { type: message.type });
      else this.handle(message);
    } catch (error) {
      this.options.logger.error('the orchestrator broke the protocol', { reason: messageOf(error) });
      this.end(CLOSE.violation, messageOf(error));
    }
  }

  private handle(message: OrchestratorMessage): void {
    const { engine } = this.options;
    if (message.type === 'status') {
      this.takeStatus(message);
      return;
    }
    if (message.type === 'token_verdict') {
      this.options.onTokenVerdict?.(message.verdict);
      return;
    }
    if (!this.approved) throw new Fault('protocol_violation', `a ${message.type} message came before the approval`);
    switch (message.type) {
      case 'run':
        if (this.assembly !== null)
          throw new Fault('protocol_violation', 'a run began before the one before was whole');
        this.assembly = new RunAssembly(message);
        return;
      case 'run_part':
        this.add(message);
        return;
      case 'run_cancel':
        if (this.assembly?.head.run_id === message.run_id) this.assembly = null;
        engine.cancel(message.run_id);
        return;
      case 'run_resume':
        engine.resume(message.run_id, message.from);
        return;
      case 'run_ack':
        engine.acknowledge(message.run_id);
        return;
      case 'run_confirmed':
        engine.confirmed(message.run_id);
        return;
      case 'metrics_request':
        void this.reportMetrics(message.request_id);
        return;
      case 'facts_request':
        this.answerFacts(message.request_id);
        return;
      case 'packages_request':
        void this.reportPackages(message);
        return;
      case 'terminal_open':
      case 'terminal_attach':
      case 'terminal_close':
        this.handleTerminal(message);
        return;
      case 'forward_open':
      case 'forward_close':
        this.handleForward(message);
        return;
      case 'upgrade':
      case 'upgrade_ack':
        this.options.upgrades?.handle(message);
        return;
      default:
        assertNever(message);
    }
  }

  private handleTerminal(request: TerminalRequest): void {
    const { terminals } = this.options;
    if (terminals !== undefined) terminals.handle(request);
    else if (request.type === 'terminal_open') this.send(refusalOf(request.session_id));
  }

  private handleForward(request: ForwardRequest): void {
    const { forwards } = this.options;
    const { session_id, type } = request;
    if (forwards !== undefined) forwards.handle(request);
    else if (type === 'forward_open') {
      const error = { code: 'forward_refused', message: 'this agent has no forwards' };
      this.send({ type: 'forward_answer', session_id, error });
    }
  }

  private add(part: OrchestratorMessageOf<'run_part'>): void {
    if (this.assembly === null) throw new Fault('protocol_violation', `part ${part.part} belongs to no run`);
    const content = this.assembly.add(part);
    if (content === null) return;
    const { head } = this.assembly;
    this.assembly = null;
    this.options.engine.begin(head, content);
  }

  private takeStatus(message: OrchestratorMessageOf<'status'>): void {
    const { status, name, protocol_version: version, reason } = message;
    if (commonVersion(version) === null) {
      this.end(CLOSE.version, `this agent does not speak protocol version ${version}`);
      return;
    }
    const isNewlyApproved = status === 'approved' && !this.approved;
    this.approved = status === 'approved';
    this.options.onStatus(status, name, reason ?? null);
    if (!isNewlyApproved) return;
    if (this.reportsLoss) this.options.onLossReported?.();
    void this.reportInventory();
    if (this.options.terminals !== undefined) this.send(this.options.terminals.list());
    const upgrade = this.options.upgrades?.report() ?? null;
    if (upgrade !== null) this.send(upgrade);
  }

  /**
   * Reports the facts and then the inventory, after which the orchestrator may send an apply. Later reports are in the journal too,
   * so the orchestrator asks for missing ones.
   */
  private async reportInventory(): Promise<void> {
    try {
      await this.reportFacts();
      this.send({ type: 'inventory', runs: await this.options.engine.inventory(), features: featuresHere() });
      this.options.engine.reached();
    } catch (error) {
      this.options.logger.error('the journal cannot be read', { reason: messageOf(error) });
      this.end(CLOSE.goingAway, 'the journal of the agent cannot be read');
    }
  }

  private async reportMetrics(requestId: number): Promise<void> {
    this.send({ type: 'metrics', request_id: requestId, sample: await this.options.sample() });
  }

  private end(code: number, reason: string): void {
    const { socket } = this.options;
    this.ended ??= { code, reason };
    socket.close(code, shorten(reason));
    // An unresponsive peer must not keep the agent from stopping.
    setTimeout(() => socket.terminate(), CLOSE_WITHIN).unref();
  }
}

const refusalOf = (sessionId: string): AgentMessageOf<'terminal_answer'> => ({
  type: 'terminal_answer',
  session_id: sessionId,
  user: null,
  shell: null,
  error: { code: 'terminal_unsupported', message: 'this agent has no remote terminals' },
});

/** The reason in a close frame takes at most 123 bytes (RFC 6455). */
function shorten(reason: string): string {
  let text = reason.slice(0, 120);
  while (Buffer.byteLength(text) > 120) text = text.slice(0, -1);
  return text;
}
