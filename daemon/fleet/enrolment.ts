/** Who is let in: known agents by their record, unknown ones into the bounded queue of those that wait for approval. */
import type { Clock } from '../../src/kernel/clock.js';
import type { NewId, NodeId } from '../../src/kernel/ids.js';
import type { TokenVerdict } from '../../src/wire/enrolment-token.js';
import { CLOSE } from '../../src/wire/limits.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import { SYSTEM } from '../events/domain-event.js';
import type { Emit, UnitOfWork } from '../events/unit-of-work.js';
import { type AgentRow, deleteAgent, findAgent, insertAgent, listPendingAgents } from '../store/agents.js';
import type { Queryable } from '../store/queryable.js';
import type { AgentConnection } from './agent-connection.js';
import { agentParty } from './agent-party.js';
import type { ConnectionRegistry } from './connection-registry.js';
import { type NewAgent, pendingEvent, recordOfNew } from './new-agent.js';
import { type Pass, passOf, redeem } from './token-redemption.js';

export type Admission =
  | { readonly kind: 'admitted'; readonly verdict: TokenVerdict | null }
  | {
      readonly kind: 'refused';
      readonly verdict: TokenVerdict | null;
      readonly closeCode: number;
      readonly reason: string;
    };

export interface EnrolmentLimits {
  readonly pendingCapacity: number;
  readonly pendingPerAddress: number;
}

export interface EnrolmentOptions {
  readonly uow: UnitOfWork;
  readonly registry: ConnectionRegistry;
  readonly clock: Clock;
  readonly newId: NewId;
  /** Unix milliseconds by which age is judged. */
  readonly ageTime: () => number;
  /** Asked each time, so that a changed setting takes effect. */
  readonly limits: () => EnrolmentLimits;
}

interface Arrival extends NewAgent {
  /** Its record, if there is one already. */
  readonly agent: AgentRow | null;
  readonly pass: Pass;
}

type PendingAgent = Awaited<ReturnType<typeof listPendingAgents>>[number];

const REJECTED: Admission = {
  kind: 'refused',
  verdict: null,
  closeCode: CLOSE.rejected,
  reason: 'this agent was rejected by an operator',
};

const CROWDED = { closeCode: CLOSE.full, reason: 'too many agents of this address wait for approval' } as const;

/** A pending agent is forgotten that long after it was last seen, in milliseconds. */
const PENDING_LIFE = 60 * 60 * 1000;

export class Enrolment {
  private readonly options: EnrolmentOptions;

  constructor(options: EnrolmentOptions) {
    this.options = options;
  }

  /**
   * Decides about a connection that has said hello; an unknown agent gets its record here. A token is looked at only for an
   * agent about which no operator has decided yet: `verdict` is null for the others, and for those without one.
   */
  async admit(connection: AgentConnection, hello: AgentMessageOf<'hello'>): Promise<Admission> {
    const { uow, registry, clock } = this.options;
    const { nodeId } = connection;
    const evicted: NodeId[] = [];
    const admission = await uow.write(async (tx, emit): Promise<Admission> => {
      const agent = await findAgent(tx, nodeId);
      if (agent?.status === 'rejected') return REJECTED;
      if (agent?.status === 'approved') return { kind: 'admitted', verdict: null };
      const pass = await passOf(tx, { nodeId, agent, token: hello.enrolment_token }, clock.now());
      return this.place(tx, emit, { connection, hello, agent, pass }, evicted);
    });
    for (const nodeId of evicted) registry.get(nodeId)?.close(CLOSE.full, 'too many agents wait for approval');
    return admission;
  }

  /** Forgets agents that wait for approval and have not been seen for an hour. */
  async sweep(): Promise<void> {
    const { uow, registry, ageTime } = this.options;
    const before = ageTime() - PENDING_LIFE;
    await uow.write(async (tx, emit) => {
      for (const agent of await listPendingAgents(tx)) {
        const idle = agent.last_seen_at < before && !registry.has(agent.node_id as NodeId);
        if (idle) await forget(tx, emit, agent, 'it was not seen for an hour while it waited for approval');
      }
    });
  }

  /** Gives an agent that is neither approved nor rejected its place: in the queue, or where its token puts it. */
  private async place(tx: Queryable, emit: Emit, arrival: Arrival, evicted: NodeId[]): Promise<Admission> {
    const { connection, hello, agent, pass } = arrival;
    const { verdict } = pass;
    if (agent === null && !pass.isVouched) {
      const pending = (await listPendingAgents(tx)).filter((one) => one.enrolment_token_id === null);
      if (this.isCrowded(pending, connection)) return { kind: 'refused', verdict, ...CROWDED };
      for (const one of this.surplus(pending, this.options.limits().pendingCapacity - 1)) {
        await forget(tx, emit, one, 'too many agents wait for approval, and it had waited the longest');
        evicted.push(one.node_id as NodeId);
      }
    }
    const record = agent ?? (await this.record(tx, emit, arrival));
    if (pass.verdict === 'accepted' && pass.token !== null) {
      const { token, approves } = pass;
      const { remoteAddress: address } = connection;
      const now = this.options.clock.now();
      await redeem(tx, emit, { token, approves, agent: record, hostname: hello.hostname, address, now });
    }
    return { kind: 'admitted', verdict };
  }

  private isCrowded(pending: readonly PendingAgent[], { remoteAddress }: AgentConnection): boolean {
    const { pendingPerAddress } = this.options.limits();
    return pending.filter((agent) => agent.initial_ip === remoteAddress).length >= pendingPerAddress;
  }

  /** Those that have to go so that at most `room` are left: first the ones that are not connected, then the oldest. */
  private surplus(pending: readonly PendingAgent[], room: number): readonly PendingAgent[] {
    const { registry } = this.options;
    const connected = (agent: PendingAgent) => Number(registry.has(agent.node_id as NodeId));
    const sorted = [...pending].sort((a, b) => connected(a) - connected(b) || a.connected_at - b.connected_at);
    return sorted.slice(0, Math.max(0, pending.length - room));
  }

  private async record(tx: Queryable, emit: Emit, arrival: Arrival): Promise<AgentRow> {
    const { clock, newId } = this.options;
    const record = recordOfNew(arrival, { id: newId(), now: clock.now() });
    await insertAgent(tx, record);
    // One that its token approves does not wait.
    const { pass } = arrival;
    if (pass.verdict !== 'accepted' || !pass.approves) emit(pendingEvent(arrival));
    return record;
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
