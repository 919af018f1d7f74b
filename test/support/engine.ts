/** An engine over a store in a file, and the agents at the other end of its link. */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { RecordedEvent } from '../../daemon/core/audit-log.js';
import type { EventType, RequestContext } from '../../daemon/core/domain-event.js';
import { EventBus } from '../../daemon/core/event-bus.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { TransactionalWriter, type UnitOfWork } from '../../daemon/core/unit-of-work.js';
import type { OpenDatabase } from '../../daemon/database/database.js';
import { risingIds } from '../../daemon/database/rising-ids.js';
import type { AgentSecrets } from '../../daemon/engine/agent-secrets.js';
import { NO_LIMITS } from '../../daemon/engine/applies/apply-limits.js';
import type { ApplyTarget } from '../../daemon/engine/applies/earlier-content.js';
import { Engine, type EngineOptions } from '../../daemon/engine/engine.js';
import { ModuleFiles } from '../../daemon/engine/modules/module-files.js';
import { locateIn, parseText, parseValues, type TextParser } from '../../daemon/engine/modules/text-parser.js';
import type { OutputCipher } from '../../daemon/engine/operations/operation-outputs.js';
import { agentEvent, insertAgent, updateAgent } from '../../daemon/fleet/agent-store.js';
import type { AgentLink, EngineMessage } from '../../daemon/fleet/connection-registry.js';
import { Fault, isFault } from '../../src/kernel/fault.js';
import { isNodeId, type NewId, type NodeId } from '../../src/kernel/ids.js';
import { canonicalJson } from '../../src/kernel/json.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { type CheckReport, checkResults, verifyError } from '../../src/resources/checks/check.js';
import type { Output, ResourceResult } from '../../src/resources/result.js';
import { shortened } from '../../src/resources/run-results.js';
import { encode, orchestratorDecoder, UnknownMessage } from '../../src/wire/codec.js';
import { AGENT_FEATURES } from '../../src/wire/features.js';
import type { AgentMessageOf, OrchestratorMessage, RunEnd, RunItem } from '../../src/wire/messages.js';
import { RunAssembly, type RunContent } from '../../src/wire/parts.js';
import { agentRow, ManualClock, newIds, temporaryDirectory } from './database.js';
import { countRunning, openTestDatabase } from './store.js';

export const ALICE: RequestContext = {
  rights: ALL_RIGHTS,
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
    return this.agents.get(id)?.connected === true && !this.holds.has(id);
  }

  /** Reasons why agents are held, by node ID. */
  readonly holds = new Map<NodeId, string>();

  holdOf(id: NodeId): string | null {
    return this.holds.get(id) ?? null;
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

/** Secrets of an orchestrator that stores none. */
const noSecrets: AgentSecrets = { resolve: async () => ({ source: () => null, hashes: new Map() }) };

/** Fails a test that seals an output without saying with which cipher. */
const noCipher: OutputCipher = {
  seal: () => {
    throw new Error('this bench has no cipher');
  },
  open: () => null,
};

/** Parses on the calling thread. */
export const inlineParser: TextParser = {
  parse: async (content, files) => parseText(content, files),
  parseValues: async (content) => parseValues(content),
  locate: async (content, pointers) => locateIn(content, pointers),
};

interface StartOptions {
  readonly allowRemovals?: number;
  readonly expect?: string;
  readonly to?: ApplyTarget;
  readonly confirmSecs?: number;
  readonly keepsSnapshot?: boolean;
  readonly putsBack?: string;
  /** Texts of modules that come with the apply. */
  readonly sources?: Parameters<Engine['sources']>[0];
  /** Values that come with the apply. */
  readonly values?: Parameters<Engine['oneOff']>[0];
}

export class Bench {
  readonly clock = new ManualClock();
  readonly fleet = new ScriptedFleet();
  readonly events: RecordedEvent[] = [];
  /** The engine's errors at messages; each costs the connection. */
  readonly violations: Fault[] = [];
  readonly file: string;
  /** Every write fails as on a full disk. */
  isStoreBroken = false;
  /** Number of writes that still succeed, as if the process died then; null for all. */
  writesLeft: number | null = null;
  private writer: UnitOfWork | undefined;
  private writes = 0;
  /** Returns the statements that the store has not answered yet. */
  private running = () => 0;
  private readonly options: Partial<EngineOptions>;
  private store: OpenDatabase | undefined;
  private nextId: NewId | undefined;
  private current: Engine | undefined;
  private files: ModuleFiles | undefined;
  /** Events of the process that is open. */
  bus = new EventBus(silentLogger);

  constructor(options: Partial<EngineOptions> = {}) {
    this.options = options;
    this.file = join(temporaryDirectory(), 'orch.db');
  }

  get moduleFiles(): ModuleFiles {
    if (this.files === undefined) throw new Error('the bench is not open');
    return this.files;
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

  get uow(): UnitOfWork {
    if (this.writer === undefined) throw new Error('the bench is not open');
    return this.writer;
  }

  get db(): OpenDatabase['db'] {
    if (this.store === undefined) throw new Error('the bench is not open');
    return this.store.db;
  }

  async open(): Promise<this> {
    this.writesLeft = null;
    this.store = await openTestDatabase({
      file: this.file,
      logger: silentLogger,
      clock: this.clock,
      onFatal: (error) => {
        throw error;
      },
    });
    const { db } = this.store;
    this.running = countRunning(this.store);
    const { clock } = this;
    const newId = await risingIds(db, newIds(clock));
    this.nextId = newId;
    const bus = new EventBus(silentLogger);
    this.bus = bus;
    const uow = this.counted(
      new TransactionalWriter({
        db,
        clock,
        newId,
        publish: (event) => {
          this.events.push(event);
          bus.publish(event);
        },
      }),
    );
    this.writer = uow;
    this.files = new ModuleFiles({ db, uow, clock, ageTime: () => clock.now() });
    this.current = new Engine({
      db,
      bus,
      uow,
      clock,
      files: this.files,
      newId,
      logger: silentLogger,
      link: this.fleet,
      removalGuard: () => 10,
      secrets: noSecrets,
      parser: inlineParser,
      outputCipher: noCipher,
      windows: { isPaused: () => false, closedFor: () => null },
      rightsOf: async () => null,
      onRestart: () => 'continue',
      automation: () => ({ maxConcurrent: 16, maxFailedAgents: 10, maxRepairs: 3 }),
      packages: { ask: async () => undefined, askMissing: () => undefined },
      ...this.options,
    });
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

  /** An approved agent, connected by default. */
  async agent(digit: string, { connected = true, name = `web-${digit}` } = {}): Promise<ScriptedAgent> {
    const id = nodeId(digit);
    const attributes = { platform: 'linux', arch: 'x86_64', distro: 'debian' };
    await insertAgent(
      this.db,
      agentRow({ node_id: id, name, attributes, created_at: this.clock.now(), created_id: this.newId() }),
    );
    const agent = this.fleet.add(id);
    agent.now = () => this.clock.now();
    if (connected) {
      agent.connect();
      await this.settle();
    }
    return agent;
  }

  /** The agent connects, and the fleet records it as for a real one. */
  async arrive(agent: ScriptedAgent): Promise<void> {
    agent.connect();
    await this.tell('agent.connected', agent);
    await this.rest();
  }

  /** The agent leaves, and the fleet records it as for a real one. */
  async leave(agent: ScriptedAgent): Promise<void> {
    await this.disconnect(agent);
    await this.tell('agent.disconnected', agent);
  }

  /** Records an event of the fleet about an agent. */
  async tell(type: EventType, { nodeId: node_id }: ScriptedAgent): Promise<void> {
    await this.uow.write(async (_, emit) => emit(agentEvent(type, { node_id, name: null }, type)));
  }

  /** Settles, with the background work of the engine that a second would bring. */
  async rest(): Promise<void> {
    for (let round = 0; round < 4; round += 1) {
      await this.engine.standings.idle();
      await this.while(this.engine.tick());
    }
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
          if (this.isStoreBroken || this.writesLeft === 0) throw new Fault('store_unavailable', 'the disk is full');
          if (this.writesLeft !== null) this.writesLeft -= 1;
          return await writer.write(work);
        } finally {
          this.writes -= 1;
        }
      },
    };
  }

  /** Moves messages and lets diligent agents work until nothing is left to do. */
  async settle(): Promise<void> {
    for (let idle = 0, round = 0; idle < 3; round += 1) {
      if (round > 20_000) throw new Error('the bench does not come to rest');
      let moved = this.writes > 0 || this.running() > 0;
      for (const agent of this.fleet.agents.values()) {
        if (agent.take()) moved = true;
        else if (agent.diligent && agent.connected && agent.work()) moved = true;
        if (await this.deliver(agent)) moved = true;
      }
      idle = moved ? 0 : idle + 1;
      // Whatever the engine does between two messages takes some turns of the event loop. After a pause of the machine a timer
      // alone would be only one.
      for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  async upload(name: string, files: Readonly<Record<string, string>>, supports = '[{platform: linux}]'): Promise<void> {
    await this.engine.modules.upload({ name, content: moduleText(name, files, supports) }, ALICE);
  }

  /** Starts an apply without waiting for it. */
  async start(agent: ScriptedAgent, modules: readonly string[], more: StartOptions = {}) {
    const { allowRemovals = null, confirmSecs = null, keepsSnapshot, putsBack } = more;
    const sent = await this.engine.sources(more.sources ?? [], ALICE.actor.id);
    const request = {
      ...(keepsSnapshot === undefined ? {} : { keepsSnapshot }),
      ...(putsBack === undefined ? {} : { putsBack }),
      nodeId: agent.nodeId,
      modules,
      sent,
      oneOff: await this.engine.oneOff(more.values, sent, ALICE.actor.id),
      to: more.to ?? null,
      limits: { ...NO_LIMITS, allowRemovals, confirmSecs },
      expect: more.expect ?? null,
    };
    return (await this.engine.applies.start(request, ALICE)).operation.id;
  }

  /** Applies and returns the operation when everything has come to rest. */
  async apply(agent: ScriptedAgent, modules: readonly string[], more: StartOptions = {}) {
    const id = await this.start(agent, modules, more);
    await this.settle();
    return this.engine.operations.detail(id);
  }

  async plan(
    agent: ScriptedAgent,
    modules: readonly string[],
    signal: AbortSignal = new AbortController().signal,
    values: Parameters<Engine['oneOff']>[0] = null,
  ) {
    const nothing = () => undefined;
    const oneOff = await this.engine.oneOff(values, [], ALICE.actor.id);
    const request = { nodeId: agent.nodeId, modules, oneOff, signal, onStarted: nothing, onResult: nothing };
    return this.while(this.engine.plans.plan(request, ALICE));
  }

  /** Plans the desired state of an earlier operation. */
  async planBack(agent: ScriptedAgent, to: ApplyTarget) {
    const nothing = () => undefined;
    const { signal } = new AbortController();
    const request = { nodeId: agent.nodeId, modules: [], to, signal, onStarted: nothing, onResult: nothing };
    return this.while(this.engine.plans.plan(request, ALICE));
  }

  async drift(agent: ScriptedAgent, signal: AbortSignal = new AbortController().signal) {
    return this.while(this.engine.drift.check({ nodeId: agent.nodeId, signal, requestedBy: ALICE }));
  }

  /** Keeps messages moving until the promise has settled. */
  async while<T>(promise: Promise<T>): Promise<T> {
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    promise.then(end, end);
    for (let round = 0; !isOver; round += 1) {
      if (round > 100) throw new Error('what the bench waits for does not come');
      await this.settle();
    }
    return promise;
  }

  eventTypes(prefix = ''): string[] {
    return this.events.map(({ type }) => type).filter((type) => type.startsWith(prefix));
  }
}

/** Secrets of one value, whatever their names. */
export const oneSecret = (value: string): AgentSecrets => ({
  resolve: async (_db, _agent, names) => {
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

/** An agent at the level of messages: a machine in memory, a journal, and a link whose every frame the test moves. */
export interface JournalledRun {
  readonly content: RunContent;
  readonly items: RunItem[];
  state: 'running' | 'finished';
  cancelled: boolean;
  end: RunEnd;
  error: { code: string; message: string } | null;
  /** Results of health checks; absent before they have run. */
  checks?: readonly CheckReport[];
}

/** The script's outcome for one resource instead of success; `begin` fails after the resource was made. */
export type Mishap = 'fail' | 'begin' | 'skip';

export class ScriptedAgent {
  readonly nodeId: NodeId;
  /** Identity to body, as canonical JSON. */
  readonly machine = new Map<string, string>();
  readonly journal = new Map<string, JournalledRun>();
  /** Identities that go wrong. */
  readonly mishaps = new Map<string, Mishap>();
  /** The sentences of results that failed or were skipped, by identity. */
  readonly messages = new Map<string, string>();
  /** The output of scripts, by identity. */
  readonly outputs = new Map<string, Output>();
  /** Why health checks fail, by name. */
  readonly unhealthy = new Map<string, string>();
  /** Reports of health checks in place of its own, as a lying agent sends them. */
  claims: readonly CheckReport[] | null = null;
  /** How often each item of each run was carried out. */
  readonly executions = new Map<string, number>();
  /** The actions of each apply, acknowledged or not. */
  readonly history = new Map<string, readonly RunItem[]>();
  /** Every message that ever arrived. */
  readonly received: OrchestratorMessage[] = [];
  /** Messages on their way, in order; cut with the connection. */
  inbox: OrchestratorMessage[] = [];
  outbox: EngineMessage[] = [];
  connected = false;
  /** Works by itself as soon as it has something to do. */
  diligent = true;
  /** Refuses applies, because it carries out one that the orchestrator does not know. */
  hasOtherApply = false;
  /** Says nothing about what it is asked. */
  mute = false;
  /** Reports what it knows of drifted resources, as agents do since revision 4 of the protocol. */
  isTracing = true;
  /** Times of the last changes of files in Unix milliseconds, by the clock of the machine. */
  readonly changes = new Map<string, number>();
  /** Clock of the machine. */
  now: () => number = () => 0;
  /** Reports unchanged results in short where it may. */
  isBrief = true;
  /** Announced in the inventory; null for an agent that knows no features. */
  features: readonly string[] | null = AGENT_FEATURES;
  private highest = [0, 0] as readonly [number, number];
  private assembly: RunAssembly | null = null;
  private observing: {
    readonly id: string;
    readonly mode: 'plan' | 'drift' | 'verify';
    readonly content: RunContent;
  } | null = null;

  constructor(nodeId: NodeId) {
    this.nodeId = nodeId;
  }

  connect(): void {
    this.connected = true;
    const runs = [...this.journal].map(([run_id, run]) => ({ run_id, state: run.state, results: run.items.length }));
    this.outbox.push({ type: 'inventory', runs, ...(this.features === null ? {} : { features: [...this.features] }) });
  }

  disconnect(): void {
    this.connected = false;
    this.inbox = [];
    this.outbox = [];
    this.assembly = null;
    this.observing = null;
  }

  /** The process dies in the middle of what it does, and starts again. */
  crash(): void {
    this.disconnect();
    for (const run of this.journal.values()) if (run.state === 'running') this.finish(run, 'interrupted');
  }

  get isBusy(): boolean {
    return [...this.journal.values()].some((run) => run.state === 'running');
  }

  /** Takes the next message; false when there is none. */
  take(): boolean {
    const message = this.inbox.shift();
    if (message === undefined) return false;
    this.received.push(message);
    if (!this.mute) this.handle(message);
    return true;
  }

  /** Does one piece of work; false when there is nothing to do. */
  work(): boolean {
    if (this.mute) return false;
    if (this.observing !== null) {
      this.observe();
      return true;
    }
    for (const [id, run] of this.journal) {
      if (run.state !== 'running') continue;
      const index = run.items.length;
      const total = run.content.resources.length + run.content.removals.length;
      if (run.cancelled || index === total) this.finishAndTell(id, run);
      else this.carryOut(id, run, index);
      return true;
    }
    return false;
  }

  /** SHA-256 of what is on the machine. */
  observed(): string {
    return createHash('sha256')
      .update(canonicalJson(Object.fromEntries(this.machine)))
      .digest('hex');
  }

  private handle(message: OrchestratorMessage): void {
    switch (message.type) {
      case 'run':
        this.assembly = new RunAssembly(message);
        return;
      case 'run_part': {
        const { assembly } = this;
        const content = assembly?.add(message) ?? null;
        if (assembly !== null && content !== null) this.begin(assembly.head, content);
        return;
      }
      case 'run_cancel': {
        const run = this.journal.get(message.run_id);
        if (run?.state === 'running') run.cancelled = true;
        if (this.observing?.id === message.run_id) {
          this.observing = null;
          this.say({
            type: 'run_finished',
            run_id: message.run_id,
            end: 'cancelled',
            results: 0,
            observed: null,
            error: null,
          });
        }
        return;
      }
      case 'run_resume':
        this.resume(message.run_id, message.from);
        return;
      case 'run_ack':
        this.journal.delete(message.run_id);
        return;
      case 'status':
        return;
    }
  }

  private begin(head: RunAssembly['head'], content: RunContent): void {
    const { run_id, mode } = head;
    this.say({ type: 'run_accepted', run_id });
    if (mode !== 'apply') {
      this.observing = { id: run_id, mode, content };
      return;
    }
    if (this.journal.has(run_id)) {
      this.resume(run_id, 0);
      return;
    }
    const run: JournalledRun = {
      content,
      items: [],
      state: 'running',
      cancelled: false,
      end: 'succeeded',
      error: null,
    };
    this.journal.set(run_id, run);
    this.history.set(run_id, run.items);
    const [epoch, generation] = this.highest;
    if (head.epoch < epoch || (head.epoch === epoch && head.generation <= generation)) {
      this.refuse(run_id, run, { code: 'protocol_violation', message: 'stale' });
    } else if (head.expect != null && head.expect !== this.observed()) {
      this.refuse(run_id, run, { code: 'plan_stale', message: 'the machine is not what the plan showed' });
    } else if (this.hasOtherApply) {
      this.refuse(run_id, run, { code: 'operation_in_progress', message: 'the agent is busy with an apply' });
    }
    this.highest = [head.epoch, head.generation];
  }

  private refuse(id: string, run: JournalledRun, error: { code: string; message: string }): void {
    run.error = error;
    this.finish(run, 'refused');
    this.tellEnd(id, run);
  }

  private resume(id: string, from: number): void {
    const run = this.journal.get(id);
    if (run === undefined) return;
    const items = run.items.slice(from);
    if (items.length > 0) this.tellResults(id, run.content, from, items);
    if (run.state === 'finished') this.tellEnd(id, run);
  }

  private carryOut(id: string, run: JournalledRun, index: number): void {
    const key = `${id} ${index}`;
    this.executions.set(key, (this.executions.get(key) ?? 0) + 1);
    const item = this.item(run.content, index, true);
    run.items.push(item);
    this.tellResults(id, run.content, run.items.length - 1, [item]);
  }

  private finishAndTell(id: string, run: JournalledRun): void {
    const failed = run.items.some(({ result }) => result.status === 'failed' || result.status === 'skipped');
    const end = run.cancelled ? 'cancelled' : failed ? 'failed' : 'succeeded';
    const { verify = [] } = run.content;
    if (end === 'succeeded' && (verify.length > 0 || this.claims !== null)) run.checks = this.verify(run.content);
    const error = verifyError(checkResults(verify, run.checks ?? []));
    if (this.claims === null && error !== null) run.error = error;
    this.finish(run, this.claims === null && error !== null ? 'failed' : end);
    this.tellEnd(id, run);
  }

  private finish(run: JournalledRun, end: RunEnd): void {
    run.state = 'finished';
    run.end = end;
  }

  private tellResults(run_id: string, { resources }: RunContent, from: number, items: readonly RunItem[]): void {
    this.say({ type: 'run_results', run_id, from, items: [...(this.isBrief ? shortened(items, resources) : items)] });
  }

  private tellEnd(run_id: string, run: JournalledRun): void {
    const { end, items, error } = run;
    const checks = run.checks === undefined ? {} : { checks: [...run.checks] };
    this.say({ type: 'run_finished', run_id, end, results: items.length, observed: null, error, ...checks });
  }

  /** Results of health checks. */
  private verify({ verify = [] }: RunContent): readonly CheckReport[] {
    return (
      this.claims ??
      verify.map(({ name }, index) => {
        const reason = this.unhealthy.get(name) ?? null;
        return { index, status: reason === null ? 'healthy' : 'unhealthy', duration_ms: 5, reason };
      })
    );
  }

  /** A plan or drift check in one go. */
  private observe(): void {
    const { observing } = this;
    if (observing === null) return;
    this.observing = null;
    const { id: run_id, mode, content } = observing;
    const total = content.resources.length + content.removals.length;
    const items = Array.from({ length: total }, (_, index) => this.item(content, index, false));
    if (items.length > 0) this.tellResults(run_id, content, 0, items);
    const end = items.some(({ result }) => result.status === 'failed') ? 'failed' : 'succeeded';
    const observed = mode === 'plan' ? this.observed() : null;
    if (mode === 'verify') {
      const checks = [...this.verify(content)];
      const error = verifyError(checkResults(content.verify ?? [], checks));
      this.say({
        type: 'run_finished',
        run_id,
        end: error ? 'failed' : 'succeeded',
        results: 0,
        observed,
        error,
        checks,
      });
      return;
    }
    const traced = mode === 'drift' && this.isTracing ? { traces: this.tracesOf(items), clock: this.now() } : {};
    this.say({ type: 'run_finished', run_id, end, results: items.length, observed, error: null, ...traced });
  }

  private tracesOf(items: readonly RunItem[]) {
    return items
      .filter(({ result }) => result.status === 'pending')
      .map(({ index, result: { identity, sensitive } }) => ({
        index,
        observed: sensitive
          ? null
          : createHash('sha256')
              .update(this.machine.get(identity) ?? 'gone')
              .digest('hex'),
        changed_at: this.changes.get(identity) ?? null,
      }));
  }

  private item({ resources, removals }: RunContent, index: number, change: boolean): RunItem {
    const resource = resources[index];
    const removal = removals[removals.length - 1 - (index - resources.length)];
    const sent = resource ?? removal;
    if (sent === undefined) throw new Error(`no item ${index}`);
    const existed = this.machine.has(sent.identity);
    const wanted = resource === undefined ? undefined : canonicalJson(resource.body);
    const released = removal !== undefined && resource === undefined && removal.origin === 'adopted';
    const differs = released || this.machine.get(sent.identity) !== wanted;
    const mishap = this.mishaps.get(sent.identity);
    const status = mishap
      ? mishap === 'skip'
        ? 'skipped'
        : 'failed'
      : !differs
        ? 'unchanged'
        : change
          ? 'changed'
          : 'pending';
    if ((status === 'changed' || (mishap === 'begin' && change)) && !released) {
      if (wanted === undefined) this.machine.delete(sent.identity);
      else this.machine.set(sent.identity, wanted);
    }
    const removing = released ? 'release' : 'remove';
    const action = !differs ? 'none' : resource === undefined ? removing : existed ? 'update' : 'create';
    // Removals run in reverse order, each under its own position.
    const at = resource === undefined ? resources.length + removals.indexOf(sent as never) : index;
    const output = change ? this.outputs.get(sent.identity) : undefined;
    const result = resultOf(sent, { status, action }, this.messages.get(sent.identity));
    const hasLeftNothing = mishap === 'fail' && action === 'create';
    return { index: at, result, existed: hasLeftNothing ? null : existed, ...(output ? { output } : {}) };
  }

  private say(message: EngineMessage): void {
    if (this.connected) this.outbox.push(message);
  }
}

export function resultOf(
  { module, kind, identity, id, name }: Pick<ResourceResult, 'module' | 'kind' | 'identity' | 'id' | 'name'>,
  { status, action }: Pick<ResourceResult, 'status' | 'action'>,
  message?: string,
): ResourceResult {
  const error = status === 'failed' ? { code: 'apply_failed', message: message ?? 'it went wrong' } : null;
  const reason = status === 'skipped' ? (message ?? null) : null;
  const common = { changes: [], diff: null, sensitive: false, reason, duration_ms: 1 };
  return { module, kind, identity, id, name, action, status, error, ...common };
}

export type Results = AgentMessageOf<'run_results'>;
