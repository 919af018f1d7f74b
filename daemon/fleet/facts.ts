/** Takes what agents report beside their attributes, asks them for it, and shows it to operators. */
import type { AgentFactsAnswer, factRoutes } from '../../src/contract/agents.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { FACT_LIMITS, factValue } from '../../src/kernel/facts.js';
import { Fault } from '../../src/kernel/fault.js';
import { isNodeId, type NodeId } from '../../src/kernel/ids.js';
import { isSameJson } from '../../src/kernel/json.js';
import { knownAttributes } from '../../src/language/known-attributes.js';
import { LINK_LIMITS } from '../../src/wire/limits.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import type { Core } from '../core/core.js';
import type { HandlersFor } from '../http/handler.js';
import type { AgentConnection } from './agent-connection.js';
import { agentEvent, agentLabel, findAgent, listed } from './agent-store.js';
import type { ConnectionRegistry } from './connection-registry.js';
import { findFacts, NO_FACTS, ownAfter, putFacts, type StoredFacts } from './fact-store.js';
import type { RepeatedEvents } from './report-throttle.js';
import { throughOutages } from './through-outages.js';

type Report = AgentMessageOf<'facts'>;

interface FactReportsOptions extends Pick<Core, 'clock' | 'db' | 'uow'> {
  readonly registry: ConnectionRegistry;
  /** Throttles the events of changed attributes, which those of changed facts are. */
  readonly changes: Pick<RepeatedEvents, 'passes'>;
  /** Milliseconds an agent has to answer a request. */
  readonly answerWithin?: number;
}

/** Milliseconds an agent has to answer: as long as all programs may take, and the way there and back. */
const ANSWER_WITHIN = 25_000;
/** Minimum milliseconds between two reports of a connection that were not requested. */
const REPORTS_EVERY = 10_000;

/** A request that a connection has not answered yet. */
interface Request {
  readonly id: number;
  readonly connection: AgentConnection;
  readonly answered: Promise<void>;
  answer(): void;
}

export class FactReports {
  private readonly options: FactReportsOptions;
  private readonly reported = new WeakMap<AgentConnection, number>();
  private readonly requests = new Map<NodeId, Request>();
  private last = 0;

  constructor(options: FactReportsOptions) {
    this.options = options;
  }

  /** Stores a report, also after an outage of the store. Throws `protocol_violation` for one that is too large or comes too soon. */
  async take(connection: AgentConnection, report: Report): Promise<void> {
    const request = this.requests.get(connection.nodeId);
    const isAnswer = request?.connection === connection && report.request_id === request.id;
    this.rejectTooMany(connection, isAnswer);
    rejectTooLarge(report);
    await throughOutages(
      () => this.store(connection, report),
      () => connection.state === 'closed',
    );
    if (!isAnswer) return;
    this.requests.delete(connection.nodeId);
    request.answer();
  }

  private store(connection: AgentConnection, report: Report): Promise<void> {
    return this.options.uow.write(async (tx, emit) => {
      const agent = await findAgent(tx, connection.nodeId);
      if (agent === null) return;
      const now = this.options.clock.now();
      const before = (await findFacts(tx, agent.node_id))?.facts ?? NO_FACTS;
      const { volatile, problem } = report;
      // Versions come in messages of their own.
      const { packages: _, ...reported } = report.parts;
      const { packages } = before.parts;
      const parts = packages === undefined ? reported : { ...reported, packages };
      const own = ownAfter(before.own, report, { now, limit: FACT_LIMITS.count });
      const asked = before.asked === undefined ? {} : { asked: before.asked };
      const after: StoredFacts = { parts, volatile, own, problem, ...asked };
      await putFacts(tx, agent.node_id, { facts: after, reported_at: now });
      const changed = changedFacts(before, after);
      if (changed.length === 0 || agent.status !== 'approved') return;
      const summary = `Agent ${agentLabel(agent)} reports other ${listed(changed)}`;
      const event = agentEvent('agent.attributes_changed', agent, summary, { changed });
      if (this.options.changes.passes(`attributes ${agent.node_id}`, event)) emit(event);
    });
  }

  /** Returns the facts of an agent as the API shows them. Throws `agent_not_found`. */
  async of(nodeId: string): Promise<AgentFactsAnswer> {
    const { db } = this.options;
    const agent = await findAgent(db, nodeId);
    if (agent === null) throw new Fault('agent_not_found', `there is no agent ${nodeId}`);
    const report = await findFacts(db, nodeId);
    const { parts, volatile, own, problem } = report?.facts ?? NO_FACTS;
    return {
      attributes: knownAttributes(agent.attributes, parts),
      volatile: { ...volatile },
      facts: Object.fromEntries(
        Object.entries(own).map(([name, { value, error, since }]) => [
          name,
          { ...(value === undefined ? {} : { value }), error, since: since === null ? null : toSeconds(since) },
        ]),
      ),
      problem,
      reported_at: report === null ? null : toSeconds(report.reported_at),
    };
  }

  /**
   * Has a connected agent read its facts again, and returns them. Throws `agent_not_found`, `agent_not_connected`,
   * `agent_too_old`, `agent_timeout`.
   */
  async refresh(nodeId: string): Promise<AgentFactsAnswer> {
    const { registry, answerWithin = ANSWER_WITHIN } = this.options;
    const known = await this.of(nodeId);
    const connection = isNodeId(nodeId) ? registry.get(nodeId) : undefined;
    if (connection === undefined || !isNodeId(nodeId) || !registry.isConnected(nodeId)) {
      throw new Fault('agent_not_connected', `agent ${nodeId} is not connected, so its facts cannot be read`, {
        ...(known.reported_at === null ? {} : { hint: 'the facts that it reported last: orch facts NODE' }),
      });
    }
    if (!this.reported.has(connection)) {
      throw new Fault('agent_too_old', `agent ${nodeId} has reported no facts since it connected`, {
        hint: 'its release is too old (orch agents upgrade), or it has only just connected: try again in 20 seconds',
      });
    }
    // One that answers late is not asked again meanwhile.
    const open = this.requests.get(nodeId);
    const request = open?.connection === connection ? open : this.ask(nodeId, connection);
    const timeout = new AbortController();
    const late = new Promise<'late'>((resolve) => {
      const timer = setTimeout(resolve, answerWithin, 'late');
      timeout.signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
    });
    const how = await Promise.race([request.answered, late]);
    timeout.abort();
    if (how !== 'late') return this.of(nodeId);
    throw new Fault('agent_timeout', `agent ${nodeId} did not report its facts within ${answerWithin / 1000} s`);
  }

  private ask(nodeId: NodeId, connection: AgentConnection): Request {
    this.last = (this.last % 1_000_000) + 1;
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const request: Request = { id: this.last, connection, answered, answer };
    this.requests.set(nodeId, request);
    this.options.registry.send(nodeId, [{ type: 'facts_request', request_id: request.id }]);
    return request;
  }

  private rejectTooMany(connection: AgentConnection, isAnswer: boolean): void {
    const now = this.options.clock.monotonic();
    const last = this.reported.get(connection);
    if (!isAnswer && last !== undefined && now - last < REPORTS_EVERY) {
      throw new Fault('protocol_violation', 'the peer sent its facts too often');
    }
    if (!isAnswer || last === undefined) this.reported.set(connection, now);
  }
}

function rejectTooLarge({ own, ...report }: Report): void {
  const size = JSON.stringify(own).length + JSON.stringify(report).length;
  if (size > LINK_LIMITS.facts) {
    throw new Fault('protocol_violation', `the peer sent facts of more than ${LINK_LIMITS.facts} characters`);
  }
  for (const [name, { value, error }] of Object.entries(own)) {
    if (error !== null) continue;
    const taken = factValue(value);
    if ('error' in taken)
      throw new Fault('protocol_violation', `the peer sent a fact ${name} that is none: ${taken.error}`);
  }
}

/** Returns the names of the facts that differ, as modules write them. Volatile facts do not count. */
function changedFacts(before: StoredFacts, after: StoredFacts): readonly string[] {
  const parts = differing(before.parts, after.parts);
  const own = differing(valuesOf(before.own), valuesOf(after.own));
  return [...parts, ...own.map((name) => `facts.${name}`)].sort();
}

const valuesOf = (own: StoredFacts['own']) =>
  Object.fromEntries(Object.entries(own).flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value]])));

export function differing(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => !isSameJson(before[name] ?? null, after[name] ?? null));
}

export const factHandlers = (facts: FactReports): HandlersFor<typeof factRoutes> => ({
  getAgentFacts: async ({ params }) => ({ status: 200, body: await facts.of(params.node_id) }),
  refreshAgentFacts: async ({ params }) => ({ status: 200, body: await facts.refresh(params.node_id) }),
});
