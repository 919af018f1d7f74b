import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monotonicFactory } from 'ulid';
import { onTestFinished } from 'vitest';
import { verifyChain } from '../../../daemon/audit/verify-chain.js';
import { putOperator } from '../../../daemon/auth/operator-store.js';
import type { DomainEvent, RequestContext } from '../../../daemon/core/domain-event.js';
import { TransactionalWriter, type UnitOfWork } from '../../../daemon/core/unit-of-work.js';
import { openDatabase } from '../../../daemon/database/database.js';
import type { Queryable } from '../../../daemon/database/schema.js';
import { AgentGateway, type GatewayTimeouts } from '../../../daemon/fleet/agent-gateway.js';
import { AgentListener } from '../../../daemon/fleet/agent-listener.js';
import { AgentService } from '../../../daemon/fleet/agent-service.js';
import {
  type AgentTraffic,
  ConnectionRegistry,
  type EngineMessage,
} from '../../../daemon/fleet/connection-registry.js';
import { Enrolment, type EnrolmentLimits } from '../../../daemon/fleet/enrolment.js';
import { EnrolmentTokens } from '../../../daemon/fleet/enrolment-tokens.js';
import { Presence } from '../../../daemon/fleet/presence.js';
import { TagService } from '../../../daemon/fleet/tag-service.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { NodeId } from '../../../src/kernel/ids.js';
import { type LogFields, type Logger, silentLogger } from '../../../src/kernel/logger.js';
import { type Identity, newIdentity } from '../../identity/keys.js';
import { until as waitUntil } from '../../support/until.js';
import { SteeredWriter } from './steered-writer.js';
import { TestAgent } from './test-agent.js';
import { TestClock } from './test-clock.js';

export const OPERATOR: RequestContext = {
  actor: { id: '0'.repeat(32), name: 'ada', type: 'operator' },
  requestId: '01J00000000000000000000000',
  address: '127.0.0.1',
};

/** What the engine was told, in order. */
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
  readonly gateway: AgentGateway;
  readonly listener: AgentListener;
  readonly agents: AgentService;
  readonly tags: TagService;
  readonly tokens: EnrolmentTokens;
  readonly identity = newIdentity();

  private readonly uow: UnitOfWork;

  private constructor(db: Queryable, options: FleetOptions) {
    const { clock, registry, traffic } = this;
    const uow = new TransactionalWriter({ db, clock, newId: monotonicFactory(), publish: () => undefined });
    this.db = db;
    this.uow = uow;
    this.limits = { pendingCapacity: 100, pendingPerAddress: 10, ...options.limits };
    const steered = () => new SteeredWriter(uow);
    this.writers = { enrolment: steered(), presence: steered(), service: steered() };
    this.enrolment = new Enrolment({
      uow: this.writers.enrolment,
      registry,
      clock,
      newId: monotonicFactory(),
      ageTime: () => clock.now(),
      limits: () => this.limits,
    });
    this.presence = new Presence({ uow: this.writers.presence, clock });
    const { enrolment, presence } = this;
    const logger = this.logger();
    this.gateway = new AgentGateway({
      registry,
      enrolment,
      presence,
      traffic,
      onMetrics: () => {
        throw new Fault('protocol_violation', 'nobody has asked');
      },
      terminals: { receive: () => undefined, disconnected: () => undefined, revoked: async () => undefined },
      clock,
      logger,
      ...timeoutsOf(options),
    });
    this.agents = new AgentService({ db, uow: this.writers.service, registry, connections: this.gateway, clock });
    this.tags = new TagService({ db, uow, clock });
    this.tokens = new EnrolmentTokens({
      db,
      uow,
      clock,
      ageTime: () => clock.now(),
      newId: monotonicFactory(),
      randomBytes: randomBytes,
      publicKey: this.identity.publicKey,
      address: () => ({ agent_host: null, agent_port: 4747 }),
    });
    this.listener = new AgentListener({
      host: '127.0.0.1',
      port: 0,
      privateKey: this.identity.privateKey,
      onConnection: (peer) => this.gateway.accept(peer),
      logger: silentLogger,
      timeouts: { stop: 500 },
    });
  }

  static async start(options: FleetOptions = {}): Promise<Fleet> {
    const directory = mkdtempSync(join(tmpdir(), 'orch-fleet-'));
    const file = join(directory, 'orch.db');
    const { db, close } = await openDatabase({ file, logger: silentLogger, onFatal: () => undefined });
    const fleet = new Fleet(db, options);
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
    await this.uow.write(async () => undefined);
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

const timeoutsOf = ({ timeouts }: FleetOptions) => (timeouts === undefined ? {} : { timeouts });

export const until = (holds: () => boolean | Promise<boolean>): Promise<void> => waitUntil(holds, 'it holds');
