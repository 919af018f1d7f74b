/** Asks agents for the versions of packages that their modules read, and stores the answers beside the other facts. */
import { FACT_LIMITS } from '../../src/kernel/facts.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import type { Core } from '../core/core.js';
import type { AgentConnection } from './agent-connection.js';
import { agentEvent, agentLabel, findAgent, listed } from './agent-store.js';
import type { ConnectionRegistry } from './connection-registry.js';
import { findFacts, NO_FACTS, putFacts, type StoredFacts } from './fact-store.js';
import { differing } from './facts.js';
import type { RepeatedEvents } from './report-throttle.js';
import { throughOutages } from './through-outages.js';

type Report = AgentMessageOf<'packages'>;

interface PackageVersionOptions extends Pick<Core, 'clock' | 'db' | 'logger' | 'uow'> {
  readonly registry: ConnectionRegistry;
  /** Throttles the events of changed attributes. */
  readonly changes: Pick<RepeatedEvents, 'passes'>;
  /** Milliseconds an agent has to answer a request. */
  readonly answerWithin?: number;
}

/** Milliseconds: longer than an agent waits for its package manager. */
const ANSWER_WITHIN = 15_000;
/** Minimum milliseconds between two reports of a connection that were not requested. */
const REPORTS_EVERY = 10_000;

interface Request {
  readonly connection: AgentConnection;
  readonly names: readonly string[];
  settle(outcome: Outcome): void;
}

type Outcome = 'stored' | 'late' | 'gone' | { readonly problem: string };

export class PackageVersionReports {
  private readonly options: PackageVersionOptions;
  private readonly requests = new Map<number, Request>();
  private readonly reported = new WeakMap<AgentConnection, number>();
  private last = 0;

  constructor(options: PackageVersionOptions) {
    this.options = options;
  }

  /**
   * Has a connected agent read the versions of these packages now, beside those that were asked for earlier, and stores them.
   * Throws `agent_not_connected`, `agent_timeout`, and `expression_error` if its package manager gives none.
   */
  async ask(nodeId: NodeId, names: readonly string[]): Promise<void> {
    const { db, registry, answerWithin = ANSWER_WITHIN } = this.options;
    if (names.length > FACT_LIMITS.packages) {
      const limit = `an agent reports at most ${FACT_LIMITS.packages}`;
      throw new Fault('expression_error', `the modules read the versions of ${names.length} packages, and ${limit}`);
    }
    const { asked = [] } = (await findFacts(db, nodeId))?.facts ?? NO_FACTS;
    const all = [...new Set([...asked, ...names])];
    const connection = registry.get(nodeId);
    if (connection === undefined || !registry.isConnected(nodeId)) throw unconnected(nodeId);
    const outcome = await this.request(connection, all.length > FACT_LIMITS.packages ? names : all, answerWithin);
    if (outcome === 'stored') return;
    if (outcome === 'gone') throw unconnected(nodeId);
    if (outcome === 'late') {
      const seconds = answerWithin / 1000;
      throw new Fault('agent_timeout', `agent ${nodeId} did not report the versions of packages within ${seconds} s`);
    }
    throw new Fault('expression_error', `agent ${nodeId} cannot read the versions of packages: ${outcome.problem}`);
  }

  /** Asks in the background, if the agent has not been asked for one of the packages. */
  askMissing(nodeId: NodeId, names: readonly string[]): void {
    this.inBackground(nodeId, ({ asked = [] }) => names.some((name) => !asked.includes(name)), names);
  }

  /** Asks in the background for what an agent was asked for on an earlier connection. */
  connected({ nodeId }: AgentConnection): void {
    this.inBackground(nodeId, ({ asked = [] }) => asked.length > 0, []);
  }

  private inBackground(nodeId: NodeId, isNeeded: (facts: StoredFacts) => boolean, names: readonly string[]): void {
    const { db, logger } = this.options;
    const asking = async () => {
      const isOpen = [...this.requests.values()].some(({ connection }) => connection.nodeId === nodeId);
      if (!isOpen && isNeeded((await findFacts(db, nodeId))?.facts ?? NO_FACTS)) await this.ask(nodeId, names);
    };
    asking().catch((error) =>
      logger.info('an agent reported no versions of packages', { node_id: nodeId, reason: messageOf(error) }),
    );
  }

  disconnected(connection: AgentConnection): void {
    for (const request of this.requests.values()) if (request.connection === connection) request.settle('gone');
  }

  /** Stores a report, also after an outage of the store. Throws `protocol_violation` for one that comes too soon. */
  async take(connection: AgentConnection, report: Report): Promise<void> {
    const found = report.request_id == null ? undefined : this.requests.get(report.request_id);
    const request = found?.connection === connection ? found : null;
    if (request === null) this.rejectTooMany(connection);
    const { problem } = report;
    if (problem === null) {
      await throughOutages(
        () => this.store(connection, report, request?.names ?? null),
        () => connection.state === 'closed',
      );
    }
    request?.settle(problem === null ? 'stored' : { problem });
  }

  private async request(connection: AgentConnection, names: readonly string[], within: number): Promise<Outcome> {
    this.last = (this.last % 1_000_000) + 1;
    const id = this.last;
    let timer: NodeJS.Timeout | undefined;
    const outcome = new Promise<Outcome>((settle) => {
      timer = setTimeout(settle, within, 'late');
      this.requests.set(id, { connection, names, settle });
    });
    this.options.registry.send(connection.nodeId, [{ type: 'packages_request', request_id: id, names: [...names] }]);
    try {
      return await outcome;
    } finally {
      clearTimeout(timer);
      this.requests.delete(id);
    }
  }

  /** @param names packages that the agent was asked for; null for those of the last request */
  private store({ nodeId }: AgentConnection, { versions }: Report, names: readonly string[] | null): Promise<void> {
    const { clock, uow, changes } = this.options;
    return uow.write(async (tx, emit) => {
      const agent = await findAgent(tx, nodeId);
      if (agent === null) return;
      const row = await findFacts(tx, nodeId);
      const before: StoredFacts = row?.facts ?? NO_FACTS;
      const asked = names ?? before.asked ?? [];
      const packages = Object.fromEntries(Object.entries(versions).filter(([name]) => asked.includes(name)));
      const after: StoredFacts = { ...before, parts: { ...before.parts, packages }, asked };
      await putFacts(tx, nodeId, { facts: after, reported_at: row?.reported_at ?? clock.now() });
      const changed = differing(before.parts.packages ?? {}, packages).map((name) => `packages.${name}`);
      if (changed.length === 0 || agent.status !== 'approved') return;
      const summary = `Agent ${agentLabel(agent)} reports other ${listed(changed)}`;
      const event = agentEvent('agent.attributes_changed', agent, summary, { changed });
      if (changes.passes(`attributes ${agent.node_id}`, event)) emit(event);
    });
  }

  private rejectTooMany(connection: AgentConnection): void {
    const now = this.options.clock.monotonic();
    const last = this.reported.get(connection);
    if (last !== undefined && now - last < REPORTS_EVERY) {
      throw new Fault('protocol_violation', 'the peer sent the versions of its packages too often');
    }
    this.reported.set(connection, now);
  }
}

const unconnected = (nodeId: NodeId): Fault =>
  new Fault('agent_not_connected', `agent ${nodeId} is not connected, so the versions of its packages are unknown`);
