/** An engine over a store in a file, and the agents at the other end of its link. */
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { RecordedEvent } from '../../daemon/core/audit-log.js';
import type { RequestContext } from '../../daemon/core/domain-event.js';
import { TransactionalWriter, type UnitOfWork } from '../../daemon/core/unit-of-work.js';
import { type OpenDatabase, openDatabase } from '../../daemon/database/database.js';
import { risingIds } from '../../daemon/database/rising-ids.js';
import type { AgentSecrets } from '../../daemon/engine/agent-secrets.js';
import { Engine, type EngineOptions } from '../../daemon/engine/engine.js';
import { insertAgent, updateAgent } from '../../daemon/fleet/agent-store.js';
import type { AgentLink } from '../../daemon/fleet/connection-registry.js';
import { Fault, isFault } from '../../src/kernel/fault.js';
import { isNodeId, type NewId, type NodeId } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { encode, orchestratorDecoder, UnknownMessage } from '../../src/wire/codec.js';
import type { OrchestratorMessage } from '../../src/wire/messages.js';
import { agentRow, ManualClock, newIds, temporaryDirectory } from '../database/support.js';
import { ScriptedAgent } from './scripted-agent.js';

export const ALICE: RequestContext = {
  actor: { id: 'a11ce'.padEnd(32, '0'), name: 'alice', type: 'operator' },
  requestId: 'request-1',
  address: '192.0.2.7',
};

export function nodeId(digit: string): NodeId {
  const id = digit.repeat(32);
  if (!isNodeId(id)) throw new Error(`${digit} is no digit`);
  return id;
}

const decode = orchestratorDecoder();

/** The connections of a fleet, as the engine sees them. Every message passes the codec. */
export class ScriptedFleet implements AgentLink {
  readonly agents = new Map<NodeId, ScriptedAgent>();

  add(id: NodeId): ScriptedAgent {
    const agent = new ScriptedAgent(id);
    this.agents.set(id, agent);
    return agent;
  }

  isConnected(id: NodeId): boolean {
    return this.agents.get(id)?.connected === true;
  }

  send(id: NodeId, messages: readonly OrchestratorMessage[]): boolean {
    const agent = this.agents.get(id);
    if (!agent?.connected) return false;
    agent.inbox.push(
      ...messages.flatMap((message) => {
        const decoded = decode(encode(message));
        return decoded instanceof UnknownMessage ? [] : decoded;
      }),
    );
    return true;
  }
}

export class Bench {
  readonly clock = new ManualClock();
  readonly fleet = new ScriptedFleet();
  readonly events: RecordedEvent[] = [];
  /** What the engine threw at messages; each costs the connection. */
  readonly violations: Fault[] = [];
  readonly file: string;
  /** Every write fails as on a full disk. */
  isStoreBroken = false;
  private writes = 0;
  private readonly options: Partial<EngineOptions>;
  private store: OpenDatabase | undefined;
  private nextId: NewId | undefined;
  private current: Engine | undefined;

  constructor(options: Partial<EngineOptions> = {}) {
    this.options = options;
    this.file = join(temporaryDirectory(), 'orch.db');
  }

  get engine(): Engine {
    if (this.current === undefined) throw new Error('the bench is not open');
    return this.current;
  }

  /** Of the process that is open: a restart makes another. */
  get newId(): NewId {
    if (this.nextId === undefined) throw new Error('the bench is not open');
    return this.nextId;
  }

  get db(): OpenDatabase['db'] {
    if (this.store === undefined) throw new Error('the bench is not open');
    return this.store.db;
  }

  async open(): Promise<this> {
    this.store = await openDatabase({
      file: this.file,
      logger: silentLogger,
      onFatal: (error) => {
        throw error;
      },
    });
    const { db } = this.store;
    const { clock } = this;
    const newId = await risingIds(db, newIds(clock));
    this.nextId = newId;
    const uow = this.counted(
      new TransactionalWriter({ db, clock, newId, publish: (event) => this.events.push(event) }),
    );
    this.current = new Engine({ db, uow, clock, newId, logger: silentLogger, link: this.fleet, ...this.options });
    await this.current.start();
    return this;
  }

  async close(): Promise<void> {
    await this.current?.stop();
    await this.store?.close();
    this.current = undefined;
    this.store = undefined;
  }

  /** The orchestrator stops and starts again: all connections are cut, the store stays. */
  async restart(): Promise<void> {
    for (const agent of this.fleet.agents.values()) agent.disconnect();
    await this.close();
    await this.open();
  }

  /** An approved agent, connected unless told otherwise. */
  async agent(digit: string, { connected = true, name = `web-${digit}` } = {}): Promise<ScriptedAgent> {
    const id = nodeId(digit);
    const attributes_json = JSON.stringify({ platform: 'linux', arch: 'x86_64', distro: 'debian' });
    await insertAgent(
      this.db,
      agentRow({ node_id: id, name, attributes_json, created_at: this.clock.now(), created_id: this.newId() }),
    );
    const agent = this.fleet.add(id);
    if (connected) {
      agent.connect();
      await this.settle();
    }
    return agent;
  }

  async disconnect(agent: ScriptedAgent): Promise<void> {
    agent.disconnect();
    this.engine.traffic.disconnected(agent.nodeId);
  }

  async reject(agent: ScriptedAgent): Promise<void> {
    await updateAgent(this.db, agent.nodeId, { status: 'rejected' });
    agent.disconnect();
    await this.engine.traffic.revoked(agent.nodeId);
  }

  /** Hands the next message of an agent to the engine; one that breaks the protocol costs the connection. */
  async deliver(agent: ScriptedAgent): Promise<boolean> {
    const message = agent.outbox.shift();
    if (message === undefined) return false;
    try {
      await this.engine.traffic.receive(agent.nodeId, message);
    } catch (error) {
      if (!isFault(error)) throw error;
      this.violations.push(error);
      await this.disconnect(agent);
    }
    return true;
  }

  /** The writer, with an eye on whether it is at work, and a switch that makes it fail. */
  private counted(writer: UnitOfWork): UnitOfWork {
    return {
      write: async (work) => {
        this.writes += 1;
        try {
          if (this.isStoreBroken) throw new Fault('store_unavailable', 'the disk is full');
          return await writer.write(work);
        } finally {
          this.writes -= 1;
        }
      },
    };
  }

  /** Moves messages and lets diligent agents work until nothing happens any more. */
  async settle(): Promise<void> {
    for (let idle = 0, round = 0; idle < 3; round += 1) {
      if (round > 20_000) throw new Error('the bench does not come to rest');
      let moved = this.writes > 0;
      for (const agent of this.fleet.agents.values()) {
        if (agent.take()) moved = true;
        else if (agent.diligent && agent.connected && agent.work()) moved = true;
        if (await this.deliver(agent)) moved = true;
      }
      // Whatever the engine does between two messages takes some rounds of the event loop.
      idle = moved ? 0 : idle + 1;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  async upload(name: string, files: Readonly<Record<string, string>>, supports = '[{platform: linux}]'): Promise<void> {
    await this.engine.modules.upload({ name, content: moduleText(name, files, supports) }, ALICE);
  }

  /** Starts an apply without waiting for it. */
  async start(
    agent: ScriptedAgent,
    modules: readonly string[],
    more: { allowRemovals?: number; expect?: string } = {},
  ) {
    const request = {
      nodeId: agent.nodeId,
      modules,
      allowRemovals: more.allowRemovals ?? null,
      expect: more.expect ?? null,
    };
    return (await this.engine.applies.start(request, ALICE)).operationId;
  }

  /** Applies and returns the operation when everything has come to rest. */
  async apply(
    agent: ScriptedAgent,
    modules: readonly string[],
    more: { allowRemovals?: number; expect?: string } = {},
  ) {
    const id = await this.start(agent, modules, more);
    await this.settle();
    return this.engine.operations.detail(id);
  }

  async plan(agent: ScriptedAgent, modules: readonly string[], signal: AbortSignal = new AbortController().signal) {
    const nothing = () => undefined;
    const request = { nodeId: agent.nodeId, modules, signal, onStarted: nothing, onResult: nothing };
    return this.while(this.engine.plans.plan(request, ALICE));
  }

  async drift(agent: ScriptedAgent, signal: AbortSignal = new AbortController().signal) {
    return this.while(this.engine.drift.check({ nodeId: agent.nodeId, signal, requestedBy: ALICE }));
  }

  /** Keeps messages moving until the promise has settled. */
  async while<T>(promise: Promise<T>): Promise<T> {
    const outcome = promise.then(
      () => true,
      () => true,
    );
    await this.settle();
    for (let round = 0; !(await Promise.race([outcome, this.settle()])); round += 1) {
      if (round > 100) throw new Error('what the bench waits for does not come');
    }
    return promise;
  }

  eventTypes(prefix = ''): string[] {
    return this.events.map(({ type }) => type).filter((type) => type.startsWith(prefix));
  }
}

/** Secrets of one value, whatever their names. */
export const oneSecret = (value: string): AgentSecrets => ({
  lend: async (_db, _agent, names) => {
    const hashes = new Map([...names].map((name) => [name, '1a2b'.padEnd(32, '0')]));
    return { source: () => ({ value, tag: '1a2b' }), hashes };
  },
});

export async function openBench(options: Partial<EngineOptions> = {}): Promise<Bench> {
  const bench = await new Bench(options).open();
  onTestFinished(() => bench.close());
  return bench;
}

export function moduleText(
  name: string,
  files: Readonly<Record<string, string>>,
  supports = '[{platform: linux}]',
): string {
  const resources = Object.entries(files).map(
    ([path, content]) =>
      `  - resource: {file-unix: {path: ${JSON.stringify(path)}, content: ${JSON.stringify(content)}}}`,
  );
  return `name: ${name}\nsupports: ${supports}\nresources:${resources.length === 0 ? ' []' : ''}\n${resources.join('\n')}\n`;
}
