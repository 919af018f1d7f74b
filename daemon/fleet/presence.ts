/** Records connections in the store and the audit log: arrivals, departures, changed attributes and refusals. */
import { hostNetworkOf } from '../../src/kernel/ip-network.js';
import { canonicalJson } from '../../src/kernel/json.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import type { Core } from '../core/core.js';
import type { DomainEvent, EventType } from '../core/domain-event.js';
import type { Emit } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';
import type { AgentConnection } from './agent-connection.js';
import {
  type AgentRow,
  type Attributes,
  agentEvent,
  agentLabel,
  findAgent,
  listed,
  noteArrival,
  noteDeparture,
  updateAgent,
} from './agent-store.js';
import { lastOf, RepeatedEvents, ReportThrottle, type Summarize } from './report-throttle.js';

interface PresenceOptions extends Pick<Core, 'clock' | 'uow'> {
  /** Returns true for an agent that several machines claim. */
  readonly isContested: (nodeId: string) => boolean;
}

type Hello = AgentMessageOf<'hello'>;

export class Presence {
  private readonly options: PresenceOptions;
  private readonly throttle: ReportThrottle;
  /** Repeated events of approved agents, by agent. */
  readonly changes: RepeatedEvents;
  /** Repeated events of unknown keys, counted together, because keys and addresses cost an attacker nothing. */
  private readonly unknownKeys: RepeatedEvents;
  /** Record of each connection's agent, as of its last recorded arrival. */
  private readonly arrivals = new WeakMap<AgentConnection, AgentRow>();
  /** Connections of contested agents whose facts are not recorded. */
  private readonly held = new WeakSet<AgentConnection>();

  constructor(options: PresenceOptions) {
    this.options = options;
    const { clock } = options;
    this.throttle = new ReportThrottle(clock);
    this.changes = new RepeatedEvents({ clock, individually: 6, summarize: summarizeChanges });
    this.unknownKeys = new RepeatedEvents({ clock, individually: 10, summarize: lastOf });
  }

  /**
   * Records the summaries of repeated events that are due; `everything` includes younger ones. Call it periodically.
   */
  async flush(everything = false): Promise<void> {
    const { uow } = this.options;
    const record = (events: readonly DomainEvent[]) =>
      uow.write(async (tx, emit) => {
        for (const event of events) if ((await findAgent(tx, event.target.id))?.status === 'approved') emit(event);
      });
    await this.changes.flush(record, everything);
    await this.unknownKeys.flush((events) => uow.write(async (_tx, emit) => events.forEach(emit)), everything);
  }

  /**
   * Records that a connected agent was admitted, or approved while it waited. Returns its current record, or null
   * when it has none. Nothing is recorded for a rejected agent or a closed connection.
   */
  async arrived(connection: AgentConnection, hello: Hello): Promise<AgentRow | null> {
    const before = this.arrivals.get(connection);
    const arrival = this.options.uow.write(async (tx, emit) => {
      const agent = await findAgent(tx, connection.nodeId);
      if (agent === null || agent.status === 'rejected' || connection.state === 'closed') return agent;
      this.arrivals.set(connection, agent);
      // The facts of a machine count only once it is known to be the agent.
      const isHeld = agent.status === 'approved' && this.options.isContested(agent.node_id);
      if (before === undefined || this.held.has(connection)) {
        if (!isHeld) await this.noteHello(tx, emit, agent, hello);
      }
      if (isHeld) this.held.add(connection);
      else this.held.delete(connection);
      if (agent.status !== 'approved' || before?.status === 'approved') return agent;
      const { remoteAddress: address } = connection;
      const { agent_version, protocol_version, journal_loss: reason } = hello;
      const as = isHeld ? ` as ${hello.hostname}, and waits until an operator decides which machine it is` : '';
      const summary = `Agent ${agentLabel(agent)} connected from ${address}${as}`;
      const metadata = { address, agent_version, protocol_version };
      this.noteConnection(emit, agentEvent('agent.connected', agent, summary, metadata));
      if (reason !== undefined) {
        const lost = `Agent ${agentLabel(agent)} has lost its journal of applies, or part of it: ${reason}`;
        const event = agentEvent('agent.journal_lost', agent, lost, { reason });
        if (this.changes.passes(`journal ${agent.node_id}`, event)) emit(event);
      }
      return agent;
    });
    return arrival.catch((error) => {
      // A presence that was not stored has not happened, and the caller may try again.
      if (before === undefined) this.arrivals.delete(connection);
      else this.arrivals.set(connection, before);
      throw error;
    });
  }

  /** Takes the new name of a connected agent for its later events. Returns the name, or null. */
  async renamed(connection: AgentConnection): Promise<string | null> {
    return this.options.uow.write(async (tx) => {
      const agent = await findAgent(tx, connection.nodeId);
      if (agent === null || !this.arrivals.has(connection)) return null;
      this.arrivals.set(connection, agent);
      return agent.name;
    });
  }

  async left(connection: AgentConnection): Promise<void> {
    const now = this.options.clock.now();
    await this.options.uow.write(async (tx, emit) => {
      // Read inside the unit of work, because the arrival may have been in flight when the connection ended.
      const agent = this.arrivals.get(connection);
      if (agent === undefined) return;
      await noteDeparture(tx, agent.node_id, now);
      if (agent.status === 'approved') {
        this.noteConnection(emit, agentEvent('agent.disconnected', agent, `Agent ${agentLabel(agent)} disconnected`));
      }
    });
  }

  async attributesChanged(connection: AgentConnection, attributes: Attributes): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      const agent = await findAgent(tx, connection.nodeId);
      if (agent !== null) await this.noteAttributes(tx, emit, agent, attributes);
    });
  }

  /** Records a refusal. An unsupported protocol version is stored in the agent's record, where operators see it. */
  async refused(connection: AgentConnection, reason: string, version?: number): Promise<void> {
    const note = async (tx: Queryable, agent: AgentRow) => {
      if (version === undefined || version === agent.protocol_version) return;
      await updateAgent(tx, agent.node_id, { protocol_version: version, updated_at: this.options.clock.now() });
    };
    await this.report('agent.refused', connection, { reason }, { note });
  }

  /**
   * Records that a token was refused. Throttled by address, because a peer without a valid token can change its key
   * freely.
   */
  async tokenRefused({ nodeId, remoteAddress: address }: AgentConnection, reason: string): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      if (!this.throttle.passes(`token ${hostNetworkOf(address)}`)) return;
      const agent = (await findAgent(tx, nodeId)) ?? { node_id: nodeId, name: null };
      const summary = `The enrolment token of agent ${agentLabel(agent)} (${address}) was not accepted: ${reason}`;
      const event = agentEvent('agent.refused', agent, summary, { reason: `enrolment token: ${reason}`, address });
      if (this.unknownKeys.passes('token', event)) emit(event);
    });
  }

  async recordViolation(connection: AgentConnection, reason: string): Promise<void> {
    await this.report('agent.protocol_violation', connection, { reason });
  }

  /** Reports two live connections with the key of an agent without an approval; `Contests` reports the others. */
  async duplicated(connection: AgentConnection): Promise<void> {
    await this.report('agent.duplicate_identity', connection, {}, { isOf: (agent) => agent?.status !== 'approved' });
  }

  private async noteHello(tx: Queryable, emit: Emit, agent: AgentRow, hello: Hello): Promise<void> {
    await this.noteAttributes(tx, emit, agent, hello.attributes);
    const { agent_version: agentVersion, protocol_version: protocolVersion } = hello;
    await noteArrival(tx, agent.node_id, { now: this.options.clock.now(), agentVersion, protocolVersion });
  }

  private async noteAttributes(tx: Queryable, emit: Emit, agent: AgentRow, attributes: Attributes): Promise<void> {
    const before = agent.attributes;
    if (canonicalJson(before) === canonicalJson(attributes)) return;
    const updated_at = this.options.clock.now();
    await updateAgent(tx, agent.node_id, { attributes, updated_at });
    if (agent.status !== 'approved') return;
    const names = new Set([...Object.keys(before), ...Object.keys(attributes)]);
    const changed = [...names].filter((name) => before[name] !== attributes[name]).sort();
    const summary = `Agent ${agentLabel(agent)} reports other ${listed(changed)}`;
    const event = agentEvent('agent.attributes_changed', agent, summary, { changed });
    if (this.changes.passes(`attributes ${agent.node_id}`, event)) emit(event);
  }

  private noteConnection(emit: Emit, event: DomainEvent): void {
    if (this.changes.passes(`connection ${event.target.id}`, event)) emit(event);
  }

  /** Records a throttled event. */
  private async report(
    type: keyof typeof REPORTS,
    connection: AgentConnection,
    metadata: { readonly reason?: string },
    { note, isOf }: ReportOptions = {},
  ): Promise<void> {
    const { nodeId, remoteAddress: address } = connection;
    await this.options.uow.write(async (tx, emit) => {
      const known = await findAgent(tx, nodeId);
      if (isOf?.(known) === false) return;
      if (known !== null) await note?.(tx, known);
      // Keys cost nothing to make, so agents without an approval are throttled by network.
      const isStranger = known === null || known.status === 'pending';
      if (!this.throttle.passes(`${type} ${isStranger ? hostNetworkOf(address) : nodeId}`)) return;
      const agent = known ?? { node_id: nodeId, name: null };
      const summary = REPORTS[type](agentLabel(agent), metadata.reason ?? address);
      const event = agentEvent(type, agent, summary, { ...metadata, address });
      if (!isStranger || this.unknownKeys.passes(type, event)) emit(event);
    });
  }
}

interface ReportOptions {
  /** Makes further writes for a known agent, even when the event is throttled. */
  readonly note?: (tx: Queryable, agent: AgentRow) => Promise<void>;
  /** Returns false for an agent that the event is not about. */
  readonly isOf?: (agent: AgentRow | null) => boolean;
}

/** Summarises connections by the agent's final state, and attributes by everything that changed. */
const summarizeChanges: Summarize = (events, count) => {
  const last = lastOf(events, count);
  if (last?.type !== 'agent.attributes_changed') return last;
  const changed = [...new Set(events.flatMap(({ metadata }) => metadata.changed ?? []))].map(String).sort();
  return { ...last, metadata: { ...last.metadata, changed } };
};

const REPORTS = {
  'agent.refused': (agent, reason) => `Agent ${agent} was turned away: ${reason}`,
  'agent.protocol_violation': (agent, reason) => `Agent ${agent} was cut off: ${reason}`,
  'agent.duplicate_identity': (agent, address) => `A second agent with the key of ${agent} came from ${address}`,
} as const satisfies Partial<Record<EventType, (agent: string, detail: string) => string>>;
