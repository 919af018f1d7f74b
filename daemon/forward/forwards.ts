/** The service of forwards: checks limits, asks agents, and ends sessions. Only the audit log keeps a forward. */
import type { Operator } from '../../src/contract/operators.js';
import { Fault, type FaultCode, isFault, messageOf } from '../../src/kernel/fault.js';
import type { ForwardKind, SessionTarget } from '../../src/kernel/forward-target.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { Service } from '../../src/kernel/service.js';
import { FEATURE_PURPOSES } from '../../src/wire/features.js';
import type { AgentMessageOf, OrchestratorMessageOf } from '../../src/wire/messages.js';
import { type AuditRow, lastAuditSeq, listAuditWindow, metadataOf } from '../core/audit-store.js';
import type { Core } from '../core/core.js';
import type { DomainEvent, RequestContext } from '../core/domain-event.js';
import { getMetaJson, setMetaJson } from '../database/meta.js';
import { notConnected } from '../fleet/not-connected.js';
import { throughOutages } from '../fleet/through-outages.js';
import { approvedAgent, mayUse, operatorRemoved } from '../terminal/eligibility.js';
import type { TerminalLink } from '../terminal/live-sessions.js';
import { Tickets } from '../terminal/tickets.js';
import {
  closedEvent,
  type ForwardEnd,
  type ForwardFacts,
  lostEvent,
  openedEvent,
  refusedEvent,
} from './forward-facts.js';
import { LiveForward } from './live-forward.js';

export interface ForwardGrant {
  readonly for: 'client' | 'agent';
  readonly sessionId: string;
  readonly nodeId: NodeId;
}

/** Limits of open forwards. */
interface ForwardRules {
  readonly perOperator: number;
  readonly perAgent: number;
}

export interface ForwardsOptions extends Pick<Core, 'clock' | 'db' | 'logger' | 'newId' | 'randomBytes' | 'uow'> {
  readonly link: TerminalLink;
  /** Throws `agent_too_old` for an agent without forwards, or without copies. */
  readonly requireFeature: (nodeId: NodeId, label: string, feature: ForwardFeature) => void;
  readonly rules: () => ForwardRules;
  /** Milliseconds that an agent has to answer [default: 15 s]. */
  readonly timeoutMs?: number;
}

export interface ForwardRequest {
  readonly nodeId: string;
  readonly operator: Pick<Operator, 'operator_id' | 'username'>;
  readonly kind: ForwardKind;
  readonly targets: readonly SessionTarget[];
}

/** Features of agents that sessions need. */
export type ForwardFeature = 'forward' | 'copy';

interface Waiting {
  readonly nodeId: NodeId;
  readonly resolve: () => void;
  readonly reject: (fault: Fault) => void;
}

const PATIENCE = 15_000;
const TICK = 1_000;

/** Error codes that an agent may refuse with. Other codes become `forward_refused`. */
const REFUSALS: ReadonlySet<string> = new Set<FaultCode>([
  'forward_refused',
  'copy_refused',
  'forward_limit',
  'shutting_down',
]);

export class Forwards implements Service {
  readonly name = 'forwards';
  readonly tickets: Tickets<ForwardGrant>;
  private readonly options: ForwardsOptions;
  private readonly live = new Map<string, LiveForward>();
  /** Requests without an answer of the agent. */
  private readonly waiting = new Map<string, Waiting>();
  /** Audit events that are being stored. */
  private readonly writes = new Set<Promise<void>>();
  private timer: NodeJS.Timeout | undefined;
  private isStopping = false;
  /** Writes the ends that an earlier orchestrator could not write; null once they are written. */
  private unseenEnds: (() => Promise<void>) | null = null;

  constructor(options: ForwardsOptions) {
    this.options = options;
    this.tickets = new Tickets(options);
  }

  async start(): Promise<void> {
    this.unseenEnds = await findUnseenEnds(this.options);
    await this.recordUnseenEnds();
    this.timer = setInterval(() => this.tick(), TICK);
  }

  /** Ends all forwards, and resolves when the audit log has their ends. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.leave();
    await Promise.all(this.writes);
  }

  /** Refuses new requests and ends all forwards, because the orchestrator stops. */
  leave(): void {
    this.isStopping = true;
    this.endAll(() => true, 'orchestrator_stopped');
  }

  find(sessionId: string): LiveForward | null {
    return this.live.get(sessionId) ?? null;
  }

  /** Reports whether the agent has forwards here, so that its socket is accepted. */
  expects(nodeId: NodeId): boolean {
    return !this.isStopping && [...this.live.values()].some(({ facts }) => facts.nodeId === nodeId);
  }

  /**
   * Opens a forward, and returns the ticket of its client. Throws `agent_not_found`, `agent_not_approved`, `agent_not_connected`,
   * `agent_too_old`, `agent_timeout`, `forward_refused`, `forward_limit`, `shutting_down`, `unauthenticated`.
   */
  async begin(request: ForwardRequest, context: RequestContext): Promise<{ sessionId: string; ticket: string }> {
    if (this.isStopping) throw new Fault('shutting_down', 'the orchestrator is stopping', { hint: 'try again soon' });
    const { kind, targets } = request;
    let asked = { kind, targets, nodeId: request.nodeId as NodeId, nodeName: null as string | null };
    try {
      const { nodeId, name } = await approvedAgent(this.options.db, request.nodeId);
      asked = { ...asked, nodeName: name };
      if (!this.options.link.isConnected(nodeId)) throw notConnected(name ?? nodeId, this.options.link.holdOf(nodeId));
      this.refuseTooOld(nodeId, name, kind);
      const { operator_id: operatorId, username: operator } = request.operator;
      const facts = { id: this.options.newId(), nodeId, nodeName: name, operatorId, operator, kind, targets };
      this.refuseOverLimit(facts);
      return await this.open(facts, context);
    } catch (error) {
      if (isFault(error) && !UNAUDITED.has(error.code)) await this.record(refusedEvent(asked, error.code, context));
      throw error;
    }
  }

  /** Handles an answer of an approved agent. */
  receive(nodeId: NodeId, { session_id: id, error }: AgentMessageOf<'forward_answer'>): void {
    const waiting = this.waiting.get(id);
    if (waiting === undefined || waiting.nodeId !== nodeId) {
      // The request has timed out, or the agent was never asked.
      const live = this.live.get(id);
      const isOwn = live?.facts.nodeId === nodeId;
      if (error === null && !isOwn) this.dismiss(nodeId, id);
      // The agent has lost a session that it had opened, maybe before its socket.
      if (error !== null && isOwn) live.end('agent_lost');
      return;
    }
    if (error === null) waiting.resolve();
    else waiting.reject(refusalOf(error));
  }

  /** Handles the loss of an agent's link. The sockets of its forwards may survive it. */
  disconnected(nodeId: NodeId): void {
    for (const waiting of this.waiting.values()) {
      if (waiting.nodeId === nodeId) waiting.reject(notConnected(nodeId, null));
    }
  }

  /** Ends everything of an agent that was rejected or removed. */
  async revoked(nodeId: NodeId): Promise<void> {
    this.disconnected(nodeId);
    this.endAll(({ facts }) => facts.nodeId === nodeId, 'agent_rejected');
    await Promise.all(this.writes);
  }

  /** Ends everything of an operator that was removed. */
  async operatorRemoved(operatorId: string): Promise<void> {
    this.endAll(({ facts }) => facts.operatorId === operatorId, 'operator_removed');
    await Promise.all(this.writes);
  }

  /** Ends the forwards that their operators may no longer have on the agent, or, with null, on any. */
  async rightsChanged(nodeId: string | null): Promise<void> {
    for (const live of [...this.live.values()]) {
      const { facts } = live;
      if (nodeId !== null && facts.nodeId !== nodeId) continue;
      if (!(await mayUse(this.options, facts.operatorId, facts.kind, facts.nodeId))) live.end('operator_removed');
    }
    await Promise.all(this.writes);
  }

  private async open(facts: ForwardFacts, context: RequestContext): Promise<{ sessionId: string; ticket: string }> {
    const { id: sessionId, nodeId } = facts;
    let hasOpened = false;
    const live = new LiveForward({
      facts,
      clock: this.options.clock,
      onEnded: (end) => {
        this.forget(live);
        if (hasOpened) this.recordEnd(live, end);
      },
    });
    this.live.set(sessionId, live);
    try {
      // From here on, removing the operator ends the forward.
      if (!(await mayUse(this.options, facts.operatorId, facts.kind, facts.nodeId))) throw operatorRemoved();
      await this.ask(facts);
      if (!live.isOver) {
        await this.record(openedEvent(facts, context));
        hasOpened = true;
        live.opened();
      }
      if (live.isOver) throw new Fault('agent_not_connected', 'the forward ended before it was open');
    } catch (error) {
      live.end('failed');
      if (hasOpened) this.recordEnd(live, live.reason ?? 'failed');
      throw error;
    }
    return { sessionId, ticket: this.tickets.issue({ for: 'client', sessionId, nodeId }) };
  }

  /** Asks the agent. Throws its refusal, `agent_not_connected`, `agent_timeout`. */
  private async ask({ id: sessionId, nodeId, nodeName, operator, kind, targets }: ForwardFacts): Promise<void> {
    const { link, timeoutMs = PATIENCE } = this.options;
    let timer: NodeJS.Timeout | undefined;
    const answer = new Promise<void>((resolve, reject) => {
      this.waiting.set(sessionId, { nodeId, resolve, reject });
      timer = setTimeout(() => reject(timedOut(timeoutMs)), timeoutMs);
    });
    answer.catch(() => undefined);
    const ticket = this.tickets.issue({ for: 'agent', sessionId, nodeId });
    const message: OrchestratorMessageOf<'forward_open'> = {
      type: 'forward_open',
      session_id: sessionId,
      ticket,
      operator,
      kind,
      targets: [...targets],
    };
    if (!link.send(nodeId, [message])) this.waiting.get(sessionId)?.reject(notConnected(nodeId, null));
    try {
      await answer;
    } catch (error) {
      // An agent that connected a moment ago may have announced its features only now.
      if (isFault(error, 'agent_timeout')) this.refuseTooOld(nodeId, nodeName, kind);
      throw error;
    } finally {
      clearTimeout(timer);
      this.waiting.delete(sessionId);
    }
  }

  /** Throws `agent_too_old`. Passes before the agent has announced its features. */
  private refuseTooOld(nodeId: NodeId, name: string | null, kind: ForwardKind): void {
    const { link, requireFeature } = this.options;
    const label = name ?? nodeId;
    const feature = kind === 'copy' ? 'copy' : 'forward';
    requireFeature(nodeId, label, feature);
    if (link.isConnected(nodeId) && !link.supports(nodeId, 'forward_open')) throw tooOld(label, feature);
  }

  /** Runs right before the forward is added, so that concurrent requests count each other. */
  private refuseOverLimit({ operatorId, nodeId, nodeName }: ForwardFacts): void {
    const { perOperator, perAgent } = this.options.rules();
    const all = [...this.live.values()];
    if (all.filter(({ facts }) => facts.operatorId === operatorId).length >= perOperator) {
      throw new Fault('forward_limit', `you have ${perOperator} forwards open, and that is the most`, {
        hint: 'end one that you do not need, or raise forward.per_operator',
      });
    }
    if (all.filter(({ facts }) => facts.nodeId === nodeId).length >= perAgent) {
      throw new Fault('forward_limit', `${nodeName ?? nodeId} has ${perAgent} forwards open, and that is the most`, {
        hint: 'wait until one ends, or raise forward.per_agent',
      });
    }
  }

  private forget({ facts: { id, nodeId } }: LiveForward): void {
    this.live.delete(id);
    this.tickets.revoke(({ sessionId }) => sessionId === id);
    this.dismiss(nodeId, id);
  }

  private dismiss(nodeId: NodeId, sessionId: string): void {
    this.options.link.send(nodeId, [{ type: 'forward_close', session_id: sessionId }]);
  }

  private recordEnd(live: LiveForward, by: ForwardEnd): void {
    const { facts, seconds, transfers, copied } = live;
    const event = closedEvent(facts, { by, seconds, transfers, copied });
    const work = () => this.record(event);
    const write = throughOutages(work, () => this.isStopping).catch((error: unknown) =>
      this.options.logger.error('the end of a forward was not recorded', {
        session_id: facts.id,
        reason: messageOf(error),
      }),
    );
    this.writes.add(write);
    void write.finally(() => this.writes.delete(write));
  }

  private async record(event: DomainEvent): Promise<void> {
    await this.options.uow.write(async (_, emit) => emit(event));
  }

  private endAll(isMeant: (live: LiveForward) => boolean, end: ForwardEnd): void {
    for (const live of [...this.live.values()]) if (isMeant(live)) live.end(end);
  }

  /** A store that refuses writes now, such as one on a full disk, does not keep the orchestrator from starting. */
  private async recordUnseenEnds(): Promise<void> {
    const write = this.unseenEnds;
    this.unseenEnds = null;
    try {
      await write?.();
    } catch (error) {
      if (!isFault(error, 'store_unavailable')) throw error;
      this.unseenEnds = write;
    }
  }

  private tick(): void {
    this.tickets.prune();
    if (this.unseenEnds !== null) {
      this.recordUnseenEnds().catch((error: unknown) =>
        this.options.logger.error('the ends of earlier forwards were not recorded', { reason: messageOf(error) }),
      );
    }
    for (const live of [...this.live.values()]) live.tick();
  }
}

/** Faults that refuse nothing: there is no such agent, it is away, or the store is. */
const UNAUDITED: ReadonlySet<string> = new Set([
  'agent_not_found',
  'agent_not_connected',
  'agent_timeout',
  'shutting_down',
  'store_unavailable',
]);

function refusalOf({ code, message }: { readonly code: string; readonly message: string }): Fault {
  if (!REFUSALS.has(code)) return new Fault('forward_refused', `the agent could not open it: ${message}`);
  if (code !== 'forward_refused' && code !== 'copy_refused') return new Fault(code as FaultCode, message);
  return new Fault(code, message, {
    hint: 'its machine decides: change that setting in /etc/orch/agent.yaml there; the agent reads it within seconds',
  });
}

const tooOld = (label: string, feature: ForwardFeature): Fault =>
  new Fault('agent_too_old', `agent ${label} is too old to ${FEATURE_PURPOSES[feature]}`, {
    hint: 'install the orch of the orchestrator on that machine',
    data: { feature },
  });

const timedOut = (timeoutMs: number): Fault =>
  new Fault('agent_timeout', `the agent answered nothing for ${timeoutMs / 1000} s`, {
    hint: 'look at its log, or try again',
  });

/** Events of the log that begin and end sessions. */
const END_EVENTS = ['forward.opened', 'forward.closed', 'copy.opened', 'copy.closed'] as const;
/** Key of the sequence number up to which every session has its end. */
const ENDED_UP_TO = 'forward.ended_up_to';
/** Events of the log that are looked through at a time. */
const STEP = 10_000;

/**
 * Finds the sessions that an earlier orchestrator had open when it was killed, and returns the function that writes their ends to
 * the audit log. Must run before this orchestrator opens a session; the ends may be written later.
 */
async function findUnseenEnds({ db, uow }: Pick<Core, 'db' | 'uow'>): Promise<() => Promise<void>> {
  const last = (await lastAuditSeq(db)) ?? 0;
  const open = new Map<unknown, AuditRow>();
  for (let after = (await getMetaJson<number>(db, ENDED_UP_TO)) ?? 0; after < last; after += STEP) {
    for (const row of await listAuditWindow(
      db,
      { eventTypes: END_EVENTS },
      { after, to: Math.min(after + STEP, last) },
    )) {
      const { session_id: id } = metadataOf(row);
      if (row.event_type.endsWith('.opened')) open.set(id, row);
      else open.delete(id);
    }
  }
  return () =>
    uow.write(async (tx, emit) => {
      for (const row of open.values()) emit(lostEvent(row));
      await setMetaJson(tx, ENDED_UP_TO, last);
    });
}
