import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Transaction } from 'kysely';
import { monotonicFactory, ulid } from 'ulid';
import { onTestFinished } from 'vitest';
import type { WebSocket } from 'ws';
import { verifyChain } from '../../daemon/audit/verify-chain.js';
import { putOperator } from '../../daemon/auth/operator-store.js';
import type { DomainEvent, RequestContext } from '../../daemon/core/domain-event.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { type Emit, TransactionalWriter, type UnitOfWork } from '../../daemon/core/unit-of-work.js';
import type { Database, Queryable } from '../../daemon/database/schema.js';
import { ModuleFiles } from '../../daemon/engine/modules/module-files.js';
import { AgentGateway, type GatewayTimeouts } from '../../daemon/fleet/agent-gateway.js';
import { AgentListener } from '../../daemon/fleet/agent-listener.js';
import { AgentService, agentHandlers } from '../../daemon/fleet/agent-service.js';
import { ApprovedKeys } from '../../daemon/fleet/approved-keys.js';
import { type AgentTraffic, ConnectionRegistry, type EngineMessage } from '../../daemon/fleet/connection-registry.js';
import { Contests } from '../../daemon/fleet/contests.js';
import { Enrolment, type EnrolmentLimits } from '../../daemon/fleet/enrolment.js';
import { EnrolmentTokens, enrolmentTokenHandlers } from '../../daemon/fleet/enrolment-tokens.js';
import { EphemeralAgents } from '../../daemon/fleet/ephemeral-agents.js';
import { FactReports } from '../../daemon/fleet/facts.js';
import { InstallEndpoint } from '../../daemon/fleet/install-endpoint.js';
import { PackageVersionReports } from '../../daemon/fleet/package-versions.js';
import { Presence } from '../../daemon/fleet/presence.js';
import { ShownAgents } from '../../daemon/fleet/shown-agents.js';
import { TagService, tagHandlers } from '../../daemon/fleet/tag-service.js';
import { type ApiServer, createApiServer } from '../../daemon/http/api-server.js';
import { type IdempotencyKeys, KeyedRequests } from '../../daemon/http/idempotency.js';
import { Packages } from '../../daemon/packages/packages.js';
import { dialContext, dialOrchestrator } from '../../src/agent/link/dial.js';
import { agentRoutes, tagRoutes } from '../../src/contract/agents.js';
import { enrolmentTokenRoutes } from '../../src/contract/enrolment-tokens.js';
import { nodeIdOf } from '../../src/identity/key-object.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { type LogFields, type Logger, silentLogger } from '../../src/kernel/logger.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { orchestratorDecoder, UnknownMessage } from '../../src/wire/codec.js';
import type { AgentMessageOf, OrchestratorMessage } from '../../src/wire/messages.js';
import { machinesOf } from './audit.js';
import { authenticate, authorize, authorizeOn, clock, noKeys } from './http.js';
import { type Identity, newIdentity } from './identity.js';
import { countRunning, openTestDatabase } from './store.js';
import { until as waitUntil } from './until.js';

export const OPERATOR: RequestContext = {
  rights: ALL_RIGHTS,
  actor: { id: '0'.repeat(32), name: 'ada', type: 'operator' },
  requestId: '01J00000000000000000000000',
  address: '127.0.0.1',
};

/** Calls of the engine, in order. */
export class RecordedTraffic implements AgentTraffic {
  readonly log: string[] = [];
  readonly messages: EngineMessage[] = [];
  /** Called with each message; what it throws the engine throws. */
  onReceive: (message: EngineMessage) => void | Promise<void> = () => undefined;

  async receive(nodeId: NodeId, message: EngineMessage): Promise<void> {
    this.log.push(`${message.type} ${nodeId}`);
    this.messages.push(message);
    await this.onReceive(message);
  }

  disconnected(nodeId: NodeId): void {
    this.log.push(`disconnected ${nodeId}`);
  }

  async revoked(nodeId: NodeId): Promise<void> {
    this.log.push(`revoked ${nodeId}`);
  }
}

export interface FleetOptions {
  readonly limits?: Partial<EnrolmentLimits>;
  readonly timeouts?: Partial<GatewayTimeouts>;
}

/** An event as the audit log has it. */
export type Logged = DomainEvent & { readonly seq: number };

/** A store, an audit log and an agent port of their own, with everything between; they end with the test. */
export class Fleet {
  readonly clock = new TestClock();
  readonly traffic = new RecordedTraffic();
  readonly registry = new ConnectionRegistry();
  /** Errors in the log, which no test expects unless it looks for them. */
  readonly errors: string[] = [];
  readonly limits: { pendingCapacity: number; pendingPerAddress: number };
  readonly db: Queryable;
  readonly writers: {
    readonly enrolment: SteeredWriter;
    readonly presence: SteeredWriter;
    readonly service: SteeredWriter;
  };
  readonly enrolment: Enrolment;
  readonly presence: Presence;
  readonly facts: FactReports;
  readonly versions: PackageVersionReports;
  readonly contests: Contests;
  readonly gateway: AgentGateway;
  readonly listener: AgentListener;
  readonly agents: AgentService;
  readonly tags: TagService;
  readonly tokens: EnrolmentTokens;
  readonly ephemeral: EphemeralAgents;
  /** Returns the agents that are not removed although they are due. */
  busy: () => Promise<ReadonlySet<string>> = async () => new Set();
  readonly approvedKeys: ApprovedKeys;
  /** Packages of a directory `packages` that tests may fill. */
  readonly packages: Packages;
  readonly dataDir: string;
  readonly identity = newIdentity();
  readonly keyedRequests = new KeyedRequests();

  readonly moduleFiles: ModuleFiles;
  private readonly uow: UnitOfWork;
  /** Returns the statements that the store has not answered yet. */
  private running = () => 0;

  private constructor(db: Queryable, dataDir: string, options: FleetOptions) {
    const { clock, registry, traffic } = this;
    const writer = new TransactionalWriter({
      db,
      clock,
      newId: monotonicFactory(),
      publish: (event) => this.keyedRequests.committed(event),
      onRecorded: (tx, events) => this.keyedRequests.record(tx, events),
    });
    const shown = new ShownAgents(db);
    const uow = shown.forgottenBy(writer);
    this.db = db;
    this.uow = uow;
    this.dataDir = dataDir;
    this.packages = new Packages({ logger: silentLogger, dataDir, release: () => null });
    this.limits = { pendingCapacity: 100, pendingPerAddress: 10, ...options.limits };
    const steered = () => new SteeredWriter(uow);
    this.writers = { enrolment: steered(), presence: steered(), service: steered() };
    this.enrolment = new Enrolment({
      db,
      uow: this.writers.enrolment,
      registry,
      clock,
      newId: monotonicFactory(),
      ageTime: () => clock.now(),
      limits: () => this.limits,
    });
    this.contests = new Contests({ db, uow: this.writers.presence, clock, registry });
    const isContested = (nodeId: string) => this.contests.isContested(nodeId);
    this.presence = new Presence({ uow: this.writers.presence, clock, isContested });
    const { enrolment, presence, contests } = this;
    this.facts = new FactReports({
      db,
      uow: this.writers.presence,
      clock,
      registry,
      changes: presence.changes,
      answerWithin: 500,
    });
    this.versions = new PackageVersionReports({
      db,
      uow: this.writers.presence,
      clock,
      registry,
      changes: presence.changes,
      logger: silentLogger,
      answerWithin: 500,
    });
    const { facts, versions } = this;
    const logger = this.logger();
    this.approvedKeys = new ApprovedKeys(db);
    this.gateway = new AgentGateway({
      approvedKeys: this.approvedKeys,
      registry,
      enrolment,
      presence,
      facts,
      versions,
      contests,
      traffic,
      onMetrics: () => {
        throw new Fault('protocol_violation', 'an answer without a request');
      },
      onUpgradeReport: async () => undefined,
      terminals: { receive: () => undefined, disconnected: () => undefined, revoked: async () => undefined },
      forwards: { receive: () => undefined, disconnected: () => undefined, revoked: async () => undefined },
      clock,
      logger,
      timeouts: { check: NEVER, ...options.timeouts },
    });
    this.agents = new AgentService({
      db,
      shown,
      uow: this.writers.service,
      registry,
      connections: this.gateway,
      contests,
      machines: machinesOf({ db }),
      standingOf: () => ({
        standing: null,
        standing_since: null,
        standing_reason: null,
        trial: null,
        automation_stopped: null,
      }),
      clock,
    });
    this.tags = new TagService({ db, uow, clock, machines: machinesOf({ db }) });
    this.ephemeral = this.newEphemeral();
    this.moduleFiles = new ModuleFiles({ db, uow, clock, ageTime: () => clock.now() });
    this.tokens = new EnrolmentTokens({
      db,
      uow,
      clock,
      ageTime: () => clock.now(),
      newId: monotonicFactory(),
      randomBytes: randomBytes,
      publicKey: this.identity.publicKey,
      address: () => ({ agent_host: null, agent_port: 4747 }),
      reachableHost: () => '192.0.2.7',
      packages: this.packages,
    });
    this.listener = new AgentListener({
      host: '127.0.0.1',
      port: 0,
      privateKey: this.identity.privateKey,
      checkedKeys: this.approvedKeys,
      onConnection: (peer) => this.gateway.accept(peer),
      visitors: new InstallEndpoint({
        db,
        clock,
        logger,
        publicKey: this.identity.publicKey,
        packages: this.packages,
        files: this.moduleFiles,
        limits: { downloads: 1 },
      }),
      logger: silentLogger,
      timeouts: { stop: 500 },
    });
  }

  static async start(options: FleetOptions = {}): Promise<Fleet> {
    const directory = mkdtempSync(join(tmpdir(), 'orch-fleet-'));
    const file = join(directory, 'orch.db');
    const store = await openTestDatabase({ file, clock: Date, logger: silentLogger, onFatal: () => undefined });
    const { db, close } = store;
    const fleet = new Fleet(db, directory, options);
    fleet.running = countRunning(store);
    onTestFinished(async () => {
      await fleet.listener.stop();
      await fleet.gateway.stop();
      await close();
      rmSync(directory, { recursive: true, force: true });
    });
    await fleet.gateway.start();
    await fleet.listener.start();
    return fleet;
  }

  /** Returns what removes ephemeral agents, as a process that has just started has it. */
  newEphemeral(): EphemeralAgents {
    const { clock, contests, db, registry, uow } = this;
    return new EphemeralAgents({
      ...{ clock, contests, db, registry, uow },
      ageTime: () => clock.now(),
      connections: this.gateway,
      busy: () => this.busy(),
    });
  }

  /** Connects and says nothing. */
  dial(identity?: Identity): Promise<TestAgent> {
    return TestAgent.dial(this.listener.address().port, identity);
  }

  /** Connects, says hello and waits for the answer. */
  async join(identity?: Identity, hello: Parameters<TestAgent['hello']>[0] = {}): Promise<TestAgent> {
    const agent = await this.dial(identity);
    agent.hello(hello);
    await Promise.race([agent.message(0), agent.closed]);
    return agent;
  }

  /** A connected agent that was approved under this name. */
  async approved(name: string, identity?: Identity): Promise<TestAgent> {
    const agent = await this.join(identity);
    await this.approve(agent.nodeId, name);
    await agent.message(1);
    return agent;
  }

  approve(nodeId: string, name?: string) {
    return this.agents.setStatus(OPERATOR, nodeId, { status: 'approved', ...(name === undefined ? {} : { name }) });
  }

  reject(nodeId: string) {
    return this.agents.setStatus(OPERATOR, nodeId, { status: 'rejected' });
  }

  /** An operator with the role admin, who may make tokens. */
  async addAdmin(operatorId: string): Promise<void> {
    await putOperator(this.db, {
      operator_id: operatorId,
      public_key: '0'.repeat(64),
      username: 'ada',
      role: 'admin',
      bootstrap: 1,
      added_at: this.clock.now(),
      added_by: 'system',
      removed_at: null,
      removed_by: null,
    });
  }

  /** Settles once the end of the agent's connection is in the store. */
  async gone(agent: TestAgent): Promise<void> {
    agent.socket.terminate();
    await until(() => this.registry.get(agent.nodeId) === undefined);
    await this.quiet();
  }

  /** Settles once everything that was begun is in the store. */
  async quiet(): Promise<void> {
    // Frames that are on their way arrive.
    await new Promise((resolve) => setTimeout(resolve, 20));
    do await this.uow.write(async () => undefined);
    while (this.running() > 0);
  }

  /** The events of some types, or all, the oldest first; the chain is checked on the way. */
  async events(...types: readonly string[]): Promise<readonly Logged[]> {
    await this.quiet();
    if ((await verifyChain(this.db)).broken) throw new Error('the audit log is broken');
    const rows = await this.db.selectFrom('audit_events').selectAll().orderBy('seq').execute();
    const wanted = rows.filter((row) => types.length === 0 || types.includes(row.event_type));
    return wanted.map((row) => ({
      seq: row.seq,
      type: row.event_type as Logged['type'],
      actor: { id: row.actor_id, name: row.actor_name, type: row.actor_type as Logged['actor']['type'] },
      target: { id: row.target_id, name: row.target_name, type: row.target_type as Logged['target']['type'] },
      summary: row.summary,
      metadata: JSON.parse(row.metadata_json),
    }));
  }

  /** The types of all events, the oldest first. */
  async story(): Promise<readonly string[]> {
    return (await this.events()).map(({ type }) => type);
  }

  private logger(): Logger {
    const error = (message: string, fields?: LogFields) => {
      this.errors.push(`${message}: ${String(fields?.reason)}`);
    };
    return { ...silentLogger, error };
  }
}

/** Longest interval of a timer. The clock of the fleet is moved by hand, and so its connections are checked by hand. */
const NEVER = 2 ** 31 - 1;

export const until = (holds: () => boolean | Promise<boolean>): Promise<void> => waitUntil(holds, 'it holds');

export const HELLO: AgentMessageOf<'hello'> = {
  type: 'hello',
  protocol_version: PROTOCOL_VERSION,
  agent_version: '0.1.0',
  hostname: 'box',
  attributes: { platform: 'linux', arch: 'x86_64' },
};

export interface Closed {
  readonly code: number;
  readonly reason: string;
}

const decode = orchestratorDecoder();

/** An agent's end of a real link, which says what a test makes it say. */
export class TestAgent {
  readonly identity: Identity;
  readonly nodeId: NodeId;
  readonly socket: WebSocket;
  readonly received: OrchestratorMessage[] = [];
  readonly closed: Promise<Closed>;
  private readonly waiting: (() => void)[] = [];

  private constructor(socket: WebSocket, identity: Identity) {
    this.socket = socket;
    this.identity = identity;
    this.nodeId = nodeIdOf(identity.publicKey);
    socket.on('error', () => undefined);
    socket.on('message', (data) => {
      const message = decode(data.toString());
      if (message instanceof UnknownMessage)
        throw new Error(`the orchestrator sent an unknown message: ${data.toString()}`);
      this.received.push(message);
      for (const wake of this.waiting.splice(0)) wake();
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    socket.resume();
  }

  static async dial(port: number, identity: Identity = newIdentity()): Promise<TestAgent> {
    const { privateKey } = identity;
    const { socket } = await dialOrchestrator({
      host: '127.0.0.1',
      port,
      context: dialContext(privateKey),
      verifyPeer: () => undefined,
      timeoutMs: 10_000,
    });
    onTestFinished(() => socket.terminate());
    return new TestAgent(socket, identity);
  }

  hello(more: Partial<AgentMessageOf<'hello'>> = {}): void {
    this.send({ ...HELLO, ...more });
  }

  /** Anything but text and bytes goes out as JSON. */
  send(message: unknown): void {
    this.socket.send(typeof message === 'string' || Buffer.isBuffer(message) ? message : JSON.stringify(message));
  }

  /** The message at this position, once it is there. */
  async message(position: number): Promise<OrchestratorMessage> {
    for (;;) {
      const message = this.received[position];
      if (message !== undefined) return message;
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
  }

  /** Stops reading, so it answers neither ping nor close, as a machine without power. */
  die(): void {
    this.socket.pause();
  }
}

/** The real API with the routes of agents and tags; a token is the name of a role. Ends with the test. */
export async function serveFleet(
  fleet: Fleet,
  idempotency: Pick<IdempotencyKeys, 'hashKey' | 'find' | 'complete'> = noKeys,
): Promise<ApiServer> {
  const api = createApiServer({
    contract: { ...agentRoutes, ...tagRoutes, ...enrolmentTokenRoutes },
    handlers: {
      ...agentHandlers(fleet.agents),
      ...tagHandlers(fleet.tags),
      ...enrolmentTokenHandlers(fleet.tokens),
    },
    authenticate,
    authorize,
    authorizeOn,
    idempotency: { ...idempotency, running: fleet.keyedRequests },
    logger: silentLogger,
    clock,
    newRequestId: () => ulid(),
    listen: { host: '127.0.0.1', port: 0 },
    tls: null,
    trustProxyTls: false,
    validateAnswers: true,
  });
  await api.start();
  onTestFinished(() => api.stop());
  return api;
}

/** The real writer, whose callers learn of a commit, or get their turn, as late as a test wants. */
export class SteeredWriter implements UnitOfWork {
  private readonly inner: UnitOfWork;
  private readonly before: Promise<void>[] = [];
  private readonly after: Promise<void>[] = [];
  /** How many units were begun, or wait to begin. */
  calls = 0;
  /** How many units have been committed. */
  commits = 0;

  constructor(inner: UnitOfWork) {
    this.inner = inner;
  }

  /** The next unit waits before it begins; returns what lets it go on. */
  holdNext(): () => void {
    return gate(this.before);
  }

  /** The caller of the next unit is kept waiting although it has committed; returns what lets it go on. */
  delayNext(): () => void {
    return gate(this.after);
  }

  async write<T>(work: (tx: Transaction<Database>, emit: Emit) => Promise<T>): Promise<T> {
    const [before, after] = [this.before.shift(), this.after.shift()];
    this.calls += 1;
    await before;
    const result = await this.inner.write(work);
    this.commits += 1;
    await after;
    return result;
  }
}

function gate(gates: Promise<void>[]): () => void {
  let open: () => void = () => undefined;
  gates.push(
    new Promise((resolve) => {
      open = resolve;
    }),
  );
  return () => open();
}

/** A clock that stands still until it is moved. */
export class TestClock implements Clock {
  private passed = 0;
  /** Milliseconds by which the wall clock was set ahead. */
  private ahead = 0;

  now(): number {
    return 1_760_000_000_000 + this.passed + this.ahead;
  }

  monotonic(): number {
    return this.passed;
  }

  advance(ms: number): void {
    this.passed += ms;
  }

  /** Sets the wall clock alone. */
  jump(ms: number): void {
    this.ahead += ms;
  }
}
