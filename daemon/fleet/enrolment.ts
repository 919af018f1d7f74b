/** Admission of agents: known ones by their record, unknown ones into a bounded queue for approval. */
import type { NodeId } from '../../src/kernel/ids.js';
import { hostNetworkOf } from '../../src/kernel/ip-network.js';
import type { Settings } from '../../src/settings/serve.js';
import type { TokenVerdict } from '../../src/wire/enrolment-token.js';
import { CLOSE } from '../../src/wire/limits.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import type { Core } from '../core/core.js';
import { type DomainEvent, SYSTEM } from '../core/domain-event.js';
import type { Emit } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';
import type { AgentConnection } from './agent-connection.js';
import {
  type AgentRow,
  agentParty,
  deleteAgent,
  findAgent,
  insertAgent,
  listPendingAgents,
  type NewAgent,
  pendingEvent,
  recordOfNew,
} from './agent-store.js';
import type { ConnectionRegistry } from './connection-registry.js';
import { RepeatedEvents, type Summarize } from './report-throttle.js';
import { checkToken, redeem, type TokenCheck } from './token-redemption.js';

type Admission =
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

interface EnrolmentOptions extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'newId' | 'uow'> {
  readonly registry: ConnectionRegistry;
  /** Returns the current limits; called for each decision, so that a changed setting takes effect. */
  readonly limits: () => EnrolmentLimits;
}

interface EnrolmentRequest extends NewAgent {
  /** Record of the agent; null for an unknown one. */
  readonly agent: AgentRow | null;
  readonly pass: TokenCheck;
}

type PendingAgent = Awaited<ReturnType<typeof listPendingAgents>>[number];

const REJECTED: Admission = {
  kind: 'refused',
  verdict: null,
  closeCode: CLOSE.rejected,
  reason: 'this agent was rejected by an operator',
};

/** Returns the admission of an agent that an operator or a token has decided about, else null. */
function decisionOn(agent: AgentRow | null): Admission | null {
  if (agent?.status === 'rejected') return REJECTED;
  return agent?.status === 'approved' ? { kind: 'admitted', verdict: null } : null;
}

const CROWDED = { closeCode: CLOSE.full, reason: 'too many agents of this address wait for approval' } as const;

const FULL = { closeCode: CLOSE.full, reason: 'too many agents wait for approval' } as const;

/** Milliseconds after which an absent pending agent is removed. */
const PENDING_LIFE = 60 * 60 * 1000;

export class Enrolment {
  private readonly options: EnrolmentOptions;
  /**
   * Repeated events of agents that arrive or expire, counted together, because keys and addresses cost an attacker
   * nothing.
   */
  private readonly repeated: RepeatedEvents;

  constructor(options: EnrolmentOptions) {
    this.options = options;
    this.repeated = new RepeatedEvents({ clock: options.clock, individually: 20, summarize: summarizeStrangers });
  }

  /**
   * Records the summaries of repeated events that are due; `everything` includes younger ones. Call it periodically.
   */
  flush(everything = false): Promise<void> {
    const { uow } = this.options;
    return this.repeated.flush((events) => uow.write(async (_tx, emit) => events.forEach(emit)), everything);
  }

  /**
   * Decides about a connection after its hello, and creates the record of an unknown agent. A token is checked only
   * while no operator has decided about the agent; `verdict` is null for other agents and without a token.
   */
  async admit(connection: AgentConnection, hello: AgentMessageOf<'hello'>): Promise<Admission> {
    const { db, uow, clock } = this.options;
    const { nodeId } = connection;
    const decided = decisionOn(await findAgent(db, nodeId));
    if (decided !== null) return decided;
    return uow.write(async (tx, emit): Promise<Admission> => {
      const agent = await findAgent(tx, nodeId);
      const decidedMeanwhile = decisionOn(agent);
      if (decidedMeanwhile !== null) return decidedMeanwhile;
      const pass = await checkToken(tx, { nodeId, agent, token: hello.enrolment_token }, clock.now());
      return this.place(tx, emit, { connection, hello, agent, pass });
    });
  }

  /** Removes pending agents that have been absent for an hour. */
  async sweep(): Promise<void> {
    const { uow, registry, ageTime } = this.options;
    const before = ageTime() - PENDING_LIFE;
    await uow.write(async (tx, emit) => {
      for (const agent of await listPendingAgents(tx)) {
        const idle = agent.last_seen_at < before && !registry.has(agent.node_id as NodeId);
        if (idle) await this.forget(tx, emit, agent, 'it was not seen for an hour while it waited for approval');
      }
    });
  }

  /** Places an agent that is neither approved nor rejected: in the queue, or where its token puts it. */
  private async place(tx: Queryable, emit: Emit, arrival: EnrolmentRequest): Promise<Admission> {
    const { connection, hello, agent, pass } = arrival;
    const { verdict } = pass;
    if (agent === null && !pass.isAccepted) {
      const pending = (await listPendingAgents(tx)).filter((one) => one.enrolment_token_id === null);
      if (this.isCrowded(pending, connection)) return { kind: 'refused', verdict, ...CROWDED };
      const surplus = this.longestAbsent(pending, this.options.limits().pendingCapacity - 1);
      if (surplus === null) return { kind: 'refused', verdict, ...FULL };
      for (const one of surplus) {
        await this.forget(tx, emit, one, 'too many agents wait for approval, and it had been away the longest');
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
    const network = hostNetworkOf(remoteAddress);
    return pending.filter((agent) => hostNetworkOf(agent.initial_ip) === network).length >= pendingPerAddress;
  }

  /**
   * Returns the agents to remove so that at most `room` stay: the longest absent ones. Returns null when the
   * connected ones alone exceed it, because new agents never displace them.
   */
  private longestAbsent(pending: readonly PendingAgent[], room: number): readonly PendingAgent[] | null {
    const excess = pending.length - room;
    if (excess <= 0) return [];
    const { registry } = this.options;
    const away = pending.filter((agent) => registry.get(agent.node_id as NodeId) === undefined);
    if (away.length < excess) return null;
    return away.sort((a, b) => a.last_seen_at - b.last_seen_at).slice(0, excess);
  }

  private async forget(tx: Queryable, emit: Emit, agent: PendingAgent, why: string): Promise<void> {
    await deleteAgent(tx, agent.node_id);
    const event: DomainEvent = {
      type: 'agent.removed',
      actor: SYSTEM,
      target: agentParty({ node_id: agent.node_id, name: null }),
      summary: `Agent ${agent.node_id} was forgotten: ${why}`,
      metadata: { reason: why },
    };
    if (this.repeated.passes('forgotten', event)) emit(event);
  }

  private async record(tx: Queryable, emit: Emit, arrival: EnrolmentRequest): Promise<AgentRow> {
    const { clock, newId } = this.options;
    const record = recordOfNew(arrival, { id: newId(), now: clock.now() });
    await insertAgent(tx, record);
    // An agent approved by its token does not wait.
    const { pass } = arrival;
    if (pass.verdict === 'accepted' && pass.approves) return record;
    const event = pendingEvent(arrival);
    if (this.repeated.passes('pending', event)) emit(event);
    return record;
  }
}

/** Returns one event for many agents, naming the last ones. */
const summarizeStrangers: Summarize = (events, count) => {
  const last = events.at(-1);
  if (last === undefined || count === 1) return last ?? null;
  const summary =
    last.type === 'agent.pending'
      ? `${count} more unknown agents wait for approval or have waited, the last of them: ${last.summary}`
      : `${count} more agents that waited for approval were forgotten, the last of them: ${last.summary}`;
  const agents = events.map(({ target, metadata }) => ({ ...metadata, node_id: target.id }));
  return { ...last, summary, metadata: { ...last.metadata, count, agents } };
};

/** Reads the limits on pending agents from the settings. */
export const pendingLimits = (settings: Settings) => ({
  pendingCapacity: settings.pending_capacity,
  pendingPerAddress: settings['limits.pending_per_address'],
});
