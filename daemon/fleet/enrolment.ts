/** Who is let in: known agents by their record, unknown ones into the bounded queue of those that wait for approval. */
import type { Clock } from '../../src/kernel/clock.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { CLOSE } from '../../src/wire/limits.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import { SYSTEM } from '../events/domain-event.js';
import type { Emit, UnitOfWork } from '../events/unit-of-work.js';
import { deleteAgent, findAgent, insertAgent, listPendingAgents } from '../store/agents.js';
import type { Queryable } from '../store/queryable.js';
import type { AgentConnection } from './agent-connection.js';
import { agentEvent } from './agent-event.js';
import { agentParty } from './agent-party.js';
import type { ConnectionRegistry } from './connection-registry.js';

export type Admission =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'refused'; readonly closeCode: number; readonly reason: string };

export interface EnrolmentLimits {
  readonly pendingCapacity: number;
  readonly pendingPerAddress: number;
}

export interface EnrolmentOptions {
  readonly uow: UnitOfWork;
  readonly registry: ConnectionRegistry;
  readonly clock: Clock;
  /** Asked each time, so that a changed setting takes effect. */
  readonly limits: () => EnrolmentLimits;
}

interface Arrival {
  readonly connection: AgentConnection;
  readonly hello: AgentMessageOf<'hello'>;
}

type PendingAgent = Awaited<ReturnType<typeof listPendingAgents>>[number];

/** A pending agent is forgotten that long after it was last seen, in milliseconds. */
const PENDING_LIFE = 60 * 60 * 1000;

export class Enrolment {
  private readonly options: EnrolmentOptions;

  constructor(options: EnrolmentOptions) {
    this.options = options;
  }

  /** Decides about a connection that has said hello; an unknown agent gets its record here. */
  async admit(connection: AgentConnection, hello: AgentMessageOf<'hello'>): Promise<Admission> {
    const evicted: NodeId[] = [];
    const admission = await this.options.uow.write(async (tx, emit): Promise<Admission> => {
      const agent = await findAgent(tx, connection.nodeId);
      if (agent === null) return this.enrol(tx, emit, { connection, hello }, evicted);
      if (agent.status !== 'rejected') return { kind: 'admitted' };
      return { kind: 'refused', closeCode: CLOSE.rejected, reason: 'this agent was rejected by an operator' };
    });
    for (const nodeId of evicted) {
      this.options.registry.get(nodeId)?.close(CLOSE.full, 'too many agents wait for approval');
    }
    return admission;
  }

  /** Forgets agents that wait for approval and have not been seen for an hour. */
  async sweep(): Promise<void> {
    const { uow, registry, clock } = this.options;
    const before = clock.now() - PENDING_LIFE;
    await uow.write(async (tx, emit) => {
      for (const agent of await listPendingAgents(tx)) {
        const idle = agent.last_seen_at < before && !registry.has(agent.node_id as NodeId);
        if (idle) await forget(tx, emit, agent, 'it was not seen for an hour while it waited for approval');
      }
    });
  }

  private async enrol(tx: Queryable, emit: Emit, arrival: Arrival, evicted: NodeId[]): Promise<Admission> {
    const { connection } = arrival;
    const limits = this.options.limits();
    const pending = await listPendingAgents(tx);
    if (pending.filter((agent) => agent.initial_ip === connection.remoteAddress).length >= limits.pendingPerAddress) {
      return {
        kind: 'refused',
        closeCode: CLOSE.full,
        reason: 'too many agents of this address wait for approval',
      };
    }
    for (const agent of this.surplus(pending, limits.pendingCapacity - 1)) {
      await forget(tx, emit, agent, 'too many agents wait for approval, and it had waited the longest');
      evicted.push(agent.node_id as NodeId);
    }
    await this.record(tx, emit, arrival);
    return { kind: 'admitted' };
  }

  /** Those that have to go so that at most `room` are left: first the ones that are not connected, then the oldest. */
  private surplus(pending: readonly PendingAgent[], room: number): readonly PendingAgent[] {
    const { registry } = this.options;
    const connected = (agent: PendingAgent) => Number(registry.has(agent.node_id as NodeId));
    const sorted = [...pending].sort((a, b) => connected(a) - connected(b) || a.connected_at - b.connected_at);
    return sorted.slice(0, Math.max(0, pending.length - room));
  }

  private async record(tx: Queryable, emit: Emit, { connection, hello }: Arrival): Promise<void> {
    const now = this.options.clock.now();
    await insertAgent(tx, {
      node_id: connection.nodeId,
      public_key: connection.publicKey,
      name: null,
      status: 'pending',
      created_at: now,
      updated_at: now,
      connected_at: now,
      last_seen_at: now,
      initial_hostname: hello.hostname,
      initial_ip: connection.remoteAddress,
      agent_version: hello.agent_version,
      protocol_version: hello.protocol_version,
      attributes_json: JSON.stringify(hello.attributes),
      state_operation_id: null,
    });
    const { publicKey: public_key, remoteAddress: address } = connection;
    const summary = `An unknown agent on ${hello.hostname} (${address}) waits for approval`;
    const agent = { node_id: connection.nodeId, name: null };
    emit(agentEvent('agent.pending', agent, summary, { public_key, hostname: hello.hostname, address }));
  }
}

async function forget(tx: Queryable, emit: Emit, agent: PendingAgent, why: string): Promise<void> {
  await deleteAgent(tx, agent.node_id);
  emit({
    type: 'agent.removed',
    actor: SYSTEM,
    target: agentParty({ node_id: agent.node_id, name: null }),
    summary: `Agent ${agent.node_id} was forgotten: ${why}`,
    metadata: { reason: why },
  });
}
