/** Serves the agents' connections: admission, routing of their messages, heartbeats and revocation. */
import { setTimeout as sleep } from 'node:timers/promises';
import { assertNever, Fault, isFault, messageOf } from '../../src/kernel/fault.js';
import type { NodeId, PublicKeyHex } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Service } from '../../src/kernel/service.js';
import { agentDecoder } from '../../src/wire/codec.js';
import { REFUSAL_TEXT, type TokenVerdict } from '../../src/wire/enrolment-token.js';
import { CLOSE, LINK_LIMITS } from '../../src/wire/limits.js';
import type { AgentMessage, AgentMessageOf } from '../../src/wire/messages.js';
import type { Core } from '../core/core.js';
import { AgentConnection, type OpenState } from './agent-connection.js';
import type { AgentPeer } from './agent-peer.js';
import type { AgentTraffic, ConnectionRegistry } from './connection-registry.js';
import type { Contests } from './contests.js';
import type { Enrolment } from './enrolment.js';
import type { FactReports } from './facts.js';
import type { PackageVersionReports } from './package-versions.js';
import type { Presence } from './presence.js';
import { throughOutages } from './through-outages.js';
import { versionFirst } from './version-first.js';
import { WriteTurns } from './write-turns.js';

/** Timeouts in milliseconds. */
export interface GatewayTimeouts {
  /** Interval at which connections are checked. Each is pinged on its own schedule, to spread the load. */
  readonly check: number;
  /** Timeout for the hello, after which the connection is closed. */
  readonly hello: number;
  /** Timeout for the ping that tests the older of two connections with the same key. */
  readonly answer: number;
}

/** Events of the connections for the terminals. */
interface TerminalTraffic {
  /** Handles a message of an approved agent. Throwing `protocol_violation` closes its connection. */
  receive(nodeId: NodeId, message: AgentMessageOf<'terminal_answer' | 'terminals'>): void;
  /** Notes that the connection is closed; the terminals have sockets of their own. */
  disconnected(nodeId: NodeId): void;
  /** Ends the terminals of an agent that was rejected or removed. */
  revoked(nodeId: NodeId): Promise<void>;
}

/** Events of the connections for the forwards, which have sockets of their own. */
interface ForwardTraffic {
  receive(nodeId: NodeId, message: AgentMessageOf<'forward_answer'>): void;
  disconnected(nodeId: NodeId): void;
  /** Ends the forwards of an agent that was rejected or removed. */
  revoked(nodeId: NodeId): Promise<void>;
}

export interface GatewayOptions extends Pick<Core, 'clock' | 'logger'> {
  readonly registry: ConnectionRegistry;
  readonly enrolment: Enrolment;
  readonly presence: Presence;
  readonly facts: Pick<FactReports, 'take'>;
  readonly versions: Pick<PackageVersionReports, 'connected' | 'disconnected' | 'take'>;
  readonly contests: Contests;
  readonly traffic: AgentTraffic;
  /** Handles a metrics answer. Throws `protocol_violation` for one that was not requested. */
  readonly onMetrics: (nodeId: NodeId, message: AgentMessageOf<'metrics'>) => void;
  readonly terminals: TerminalTraffic;
  readonly forwards: ForwardTraffic;
  /** Handles what an approved agent reports about its upgrade. */
  readonly onUpgradeReport: (nodeId: NodeId, message: AgentMessageOf<'upgrade_report'>) => Promise<void>;
  /** Collects the keys of agents that connect and are approved. */
  readonly approvedKeys?: { add(key: PublicKeyHex): void };
  readonly timeouts?: Partial<GatewayTimeouts>;
}

const TIMEOUTS: GatewayTimeouts = { check: 1_000, hello: LINK_LIMITS.helloDeadline, answer: 5_000 };
/** Interval in milliseconds at which expired pending agents are removed. */
const SWEEP_EVERY = 60_000;

/** Close reason for a rejected agent. */
const REJECTED = 'this agent was rejected by an operator';

/** Maximum characters of the reason in a status. */
const MOST_REASON = 512;

/** Minimum milliseconds between two attribute reports of a connection. */
const ATTRIBUTES_EVERY = 10_000;

export class AgentGateway implements Service {
  readonly name = 'agent gateway';
  private readonly options: GatewayOptions;
  private readonly timeouts: GatewayTimeouts;
  private readonly decode = versionFirst(agentDecoder());
  private readonly open = new Set<AgentConnection>();
  private readonly turns = new WriteTurns();
  /** Time of each connection's last attribute report, on the monotonic clock. */
  private readonly reported = new WeakMap<AgentConnection, number>();
  private readonly hellos = new WeakMap<AgentConnection, AgentMessageOf<'hello'>>();
  private readonly work: BackgroundWork;
  /** Departures that are not stored yet, by agent. */
  private readonly departures = new Map<NodeId, Promise<void>>();
  private isStopping = false;
  private heartbeat: NodeJS.Timeout | undefined;
  private sweepTimer: NodeJS.Timeout | undefined;

  constructor(options: GatewayOptions) {
    this.options = options;
    this.timeouts = { ...TIMEOUTS, ...options.timeouts };
    this.work = new BackgroundWork(options.logger);
  }

  async start(): Promise<void> {
    const { registry, enrolment, contests } = this.options;
    await contests.load();
    this.heartbeat = setInterval(() => {
      registry.heartbeat();
      this.work.start(this.flush());
    }, this.timeouts.check);
    this.sweepTimer = setInterval(() => this.work.start(enrolment.sweep()), SWEEP_EVERY);
  }

  /**
   * Closes every connection with a reason that makes the agents reconnect soon. Resolves once the disconnects are
   * recorded.
   */
  async stop(): Promise<void> {
    clearInterval(this.heartbeat);
    clearInterval(this.sweepTimer);
    this.isStopping = true;
    for (const connection of this.open) connection.close(CLOSE.goingAway, 'the orchestrator stops');
    await this.work.idle();
    this.work.start(this.flush(true));
    await this.work.idle();
  }

  /** Records repeated events as summaries. */
  private async flush(everything = false): Promise<void> {
    await this.options.presence.flush(everything);
    await this.options.enrolment.flush(everything);
  }

  /** Takes over a connection whose peer has proved its key. */
  accept(peer: AgentPeer): void {
    const { decode, turns } = this;
    const connection = new AgentConnection({ ...peer, decode, turns, clock: this.options.clock });
    const late = () => connection.close(CLOSE.violation, 'no hello in time');
    const deadline = setTimeout(late, this.timeouts.hello);
    this.open.add(connection);
    connection.open({
      message: (message) => {
        clearTimeout(deadline);
        return this.work.track(this.handle(connection, message));
      },
      failed: (fault) => this.failed(connection, fault),
      closed: (last) => {
        clearTimeout(deadline);
        this.closed(connection, last);
      },
    });
  }

  /**
   * Tells a connected agent at once that an operator has approved it. Resolves when the agent may be sent runs, or after a while when
   * the store is away, and then goes on by itself.
   */
  async approved(nodeId: NodeId): Promise<void> {
    const connection = this.options.registry.get(nodeId);
    const hello = connection && this.hellos.get(connection);
    if (hello === undefined || connection === undefined) return;
    const sent = this.work.start(this.sendStatus(connection, hello));
    await Promise.race([sent, sleep(this.timeouts.hello, undefined, { ref: false })]);
  }

  /**
   * Closes the connection of a rejected or removed agent in this tick, and ends its runs and terminals. Resolves when they have
   * ended, or after a while when the store is away, and then goes on by itself.
   */
  async revoked(nodeId: NodeId): Promise<void> {
    this.options.registry.get(nodeId)?.close(CLOSE.rejected, REJECTED);
    await this.ended(nodeId);
  }

  /**
   * Ends what belongs to an agent that the orchestrator has removed by itself. Closes a connection that was just made, so that the agent
   * comes back as an unknown one.
   */
  async removed(nodeId: NodeId): Promise<void> {
    this.options.registry.get(nodeId)?.close(CLOSE.goingAway, 'this agent was removed');
    await this.ended(nodeId);
  }

  private async ended(nodeId: NodeId): Promise<void> {
    const ended = this.work.start(this.endAll(nodeId));
    await Promise.race([ended, sleep(this.timeouts.hello, undefined, { ref: false })]);
  }

  private async endAll(nodeId: NodeId): Promise<void> {
    for (;;) {
      try {
        const { forwards, terminals, traffic } = this.options;
        await Promise.all([traffic.revoked(nodeId), terminals.revoked(nodeId), forwards.revoked(nodeId)]);
        return;
      } catch (error) {
        if (this.isStopping || !isFault(error, 'store_unavailable')) throw error;
      }
      await sleep(AGAIN_MS, undefined, { ref: false });
    }
  }

  private async handle(connection: AgentConnection, message: AgentMessage): Promise<void> {
    switch (message.type) {
      case 'hello':
        return this.hello(connection, message);
      case 'attributes':
        this.rejectIfRateLimited(connection);
        return lasting(connection, () => this.options.presence.attributesChanged(connection, message.attributes));
      case 'facts':
        return this.options.facts.take(connection, message);
      case 'packages':
        return this.options.versions.take(connection, message);
      case 'metrics':
        return this.options.onMetrics(connection.nodeId, message);
      case 'terminal_answer':
      case 'terminals':
        return this.options.terminals.receive(connection.nodeId, message);
      case 'forward_answer':
        return this.options.forwards.receive(connection.nodeId, message);
      case 'upgrade_report':
        return lasting(connection, () => this.options.onUpgradeReport(connection.nodeId, message));
      case 'inventory':
        await this.options.traffic.receive(connection.nodeId, message);
        return this.options.versions.connected(connection);
      case 'run_accepted':
      case 'run_awaiting':
      case 'run_confirm':
      case 'run_results':
      case 'run_finished':
        return this.options.traffic.receive(connection.nodeId, message);
      default:
        assertNever(message);
    }
  }

  /**
   * Rejects too frequent reports. Agents check their attributes once a minute; one that reports continuously would
   * flood the audit log.
   */
  private rejectIfRateLimited(connection: AgentConnection): void {
    const now = this.options.clock.monotonic();
    const last = this.reported.get(connection);
    if (last !== undefined && now - last < ATTRIBUTES_EVERY) {
      throw new Fault('protocol_violation', 'the peer sent its attributes too often');
    }
    this.reported.set(connection, now);
  }

  private async hello(connection: AgentConnection, hello: AgentMessageOf<'hello'>): Promise<void> {
    connection.greeted(hello);
    if (this.isTurnedAway(connection)) return;
    if (!(await this.claim(connection))) return;
    const { enrolment_token: _, ...known } = hello;
    this.hellos.set(connection, known);
    const admission = await lasting(connection, () => this.options.enrolment.admit(connection, hello));
    if (admission.verdict !== null) this.judged(connection, admission.verdict);
    if (admission.kind === 'admitted') return this.sendStatus(connection, hello);
    connection.close(admission.closeCode, admission.reason);
    this.refused(connection, admission.reason);
  }

  /** Sends the verdict on the agent's token, and reports a refused one to operators. */
  private judged(connection: AgentConnection, verdict: TokenVerdict): void {
    connection.send({ type: 'token_verdict', verdict });
    if (verdict === 'accepted') return;
    const { nodeId: node_id, remoteAddress: address } = connection;
    this.options.logger.warn('the enrolment token of an agent was not accepted', { node_id, address, verdict });
    this.work.start(this.options.presence.tokenRefused(connection, REFUSAL_TEXT[verdict]));
  }

  /** Tells a connected agent its new name. */
  async renamed(nodeId: NodeId): Promise<void> {
    const { registry, presence } = this.options;
    const connection = registry.get(nodeId);
    const hello = connection && this.hellos.get(connection);
    if (connection?.state !== 'approved' || hello === undefined) return;
    const name = await presence.renamed(connection);
    if (name === null) return;
    connection.send({ type: 'status', status: 'approved', protocol_version: hello.protocol_version, name });
  }

  /** Closes the connection of a machine that an operator has decided against. Returns true then. */
  private isTurnedAway(connection: AgentConnection): boolean {
    const { contests } = this.options;
    const { nodeId, machine } = connection;
    const refusal = machine === null ? null : contests.refusalOf(nodeId, machine);
    if (machine === null || refusal === null) return false;
    connection.close(CLOSE.duplicate, refusal);
    this.work.start(contests.noticed(nodeId, machine));
    return true;
  }

  /**
   * Registers the connection before anything is looked up about its key, so that an operator's decision in the
   * meantime finds it. Returns false, with the connection closed, when an older one is alive; a dead one is
   * terminated.
   */
  private async claim(connection: AgentConnection): Promise<boolean> {
    const { registry } = this.options;
    for (let older = registry.get(connection.nodeId); older; older = registry.get(connection.nodeId)) {
      if (await answersPing(older, this.timeouts.answer)) {
        connection.close(CLOSE.duplicate, 'another agent with the same key is connected');
        this.work.start(this.collided(older, connection));
        return false;
      }
      older.terminate();
    }
    if (connection.state === 'closed') return false;
    registry.add(connection);
    return true;
  }

  /** Records two live connections with one key: a cloned machine, or a stolen key. */
  private async collided({ machine: holder, nodeId }: AgentConnection, newer: AgentConnection): Promise<void> {
    const { contests, presence } = this.options;
    const { machine: newcomer } = newer;
    await presence.duplicated(newer);
    if (holder !== null && newcomer !== null) await contests.collided(nodeId, { holder, newcomer });
  }

  /** Sends the agent its status, according to its current record. An agent that several machines claim waits like a pending one. */
  private async sendStatus(connection: AgentConnection, hello: AgentMessageOf<'hello'>): Promise<void> {
    await this.departures.get(connection.nodeId)?.catch(() => undefined);
    const agent = await lasting(connection, () => this.options.presence.arrived(connection, hello));
    if (agent === null)
      return connection.close(CLOSE.goingAway, 'the record of this agent was deleted, so it enrols again');
    if (agent.status === 'rejected') return connection.close(CLOSE.rejected, REJECTED);
    const { registry, contests } = this.options;
    const hold = agent.status === 'approved' ? registry.holdOf(connection.nodeId) : null;
    const { machine } = connection;
    if (hold !== null && machine !== null) this.work.start(contests.noticed(connection.nodeId, machine));
    const status = agent.status === 'approved' && hold === null ? 'approved' : 'pending';
    // A concurrent approval or revocation wins.
    if (!connection.become(status)) return;
    if (status === 'approved') this.options.approvedKeys?.add(connection.publicKey);
    const name = status === 'approved' ? agent.name : null;
    const reason = hold === null ? {} : { reason: hold.slice(0, MOST_REASON) };
    connection.send({ type: 'status', status, protocol_version: hello.protocol_version, name, ...reason });
  }

  private failed(connection: AgentConnection, fault: Fault): void {
    const { logger, presence } = this.options;
    const { nodeId: node_id, remoteAddress: address } = connection;
    if (fault.code === 'protocol_violation') {
      logger.warn('an agent broke the protocol', { node_id, address, reason: fault.message });
      this.work.start(presence.recordViolation(connection, fault.message));
    } else if (fault.code === 'protocol_mismatch') {
      this.refused(connection, fault.message, Number(fault.data?.protocol_version));
    } else {
      logger.error('a message of an agent could not be handled', {
        node_id,
        address,
        reason: fault.message,
        error: fault,
      });
    }
  }

  private refused(connection: AgentConnection, reason: string, version?: number): void {
    const { nodeId: node_id, remoteAddress: address } = connection;
    this.options.logger.warn('an agent was turned away', { node_id, address, reason });
    this.work.start(this.options.presence.refused(connection, reason, version));
  }

  private closed(connection: AgentConnection, last: OpenState): void {
    this.open.delete(connection);
    if (!this.options.registry.remove(connection)) return;
    if (last === 'approved') {
      this.options.versions.disconnected(connection);
      this.options.traffic.disconnected(connection.nodeId);
      this.options.terminals.disconnected(connection.nodeId);
      this.options.forwards.disconnected(connection.nodeId);
    }
    const left = throughOutages(
      () => this.options.presence.left(connection),
      () => this.isStopping,
    );
    // An arrival that was stored before its agent's departure would leave the agent away.
    this.departures.set(connection.nodeId, left);
    const forget = () => {
      if (this.departures.get(connection.nodeId) === left) this.departures.delete(connection.nodeId);
    };
    left.then(forget, forget);
    this.work.start(left);
  }
}

/** Repeats work while the store is away, as long as the connection is open. */
const lasting = <T>(connection: AgentConnection, work: () => Promise<T>): Promise<T> =>
  throughOutages(work, () => connection.state === 'closed');

/** Pings a connection. Returns true on any sign of life within `withinMs` milliseconds, false once it has ended. */
function answersPing(connection: AgentConnection, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const answer = (isAlive: boolean) => {
      clearTimeout(deadline);
      unwatch();
      resolve(isAlive);
    };
    const deadline = setTimeout(() => answer(false), withinMs);
    const unwatch = connection.watch(answer);
    if (connection.state === 'closed') answer(false);
    else connection.ping();
  });
}

/** Tracks background work that must finish before the store may close. */
/** Milliseconds between attempts to store what a revocation ends. */
const AGAIN_MS = 500;

class BackgroundWork {
  private readonly logger: Logger;
  private readonly running = new Set<Promise<void>>();

  constructor(logger: Logger) {
    this.logger = logger;
  }

  /** Starts work that no caller awaits; its failure is logged. Returns its end. */
  start(work: Promise<void>): Promise<void> {
    const failed = (error: unknown) =>
      this.logger.error('a change of an agent was not recorded', { reason: messageOf(error) });
    return this.track(work.catch(failed));
  }

  /** Tracks work that its caller awaits. */
  track(work: Promise<void>): Promise<void> {
    this.running.add(work);
    const forget = () => this.running.delete(work);
    work.then(forget, forget);
    return work;
  }

  /** Resolves when no work is in flight. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.allSettled(this.running);
  }
}
