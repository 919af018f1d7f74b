/** The target of a rollout: which agents it covers, and how audit events name it. */

import type { RolloutRecord } from '../../../src/contract/rollouts.js';
import { Fault } from '../../../src/kernel/fault.js';
import { parseSelector } from '../../../src/language/selector.js';
import { type DomainEvent, eventOfRequest, type Party, type RequestContext } from '../../core/domain-event.js';
import type { Queryable } from '../../database/schema.js';
import { type AgentRow, findAgents } from '../../fleet/agent-store.js';
import { selectedAgents, selectorOf } from '../assignments/assignment-store.js';
import { assignmentParty, requireAssignment } from '../assignments/assignments.js';
import { type SentModule, sentNote } from '../modules/current-modules.js';
import { listModules } from '../operations/apply-events.js';
import { inputsOfRequest, oneOffNote } from '../values/one-off-request.js';
import type { GivenOneOff } from '../values/one-off-store.js';

/** Agents of a rollout: those of an assignment, those that a selector matches, or those with the given node IDs. */
export type RolloutTarget =
  | { readonly kind: 'assignment'; readonly name: string }
  | { readonly kind: 'selector'; readonly selector: string }
  | { readonly kind: 'agents'; readonly nodeIds: readonly string[] };

/** The target of a rollout. */
export interface RolloutHead {
  readonly id: string;
  /** Name of the assignment; null for another target. */
  readonly assignment: string | null;
  /** Selector that chose the agents; null for named agents. */
  readonly selector: string | null;
  /** Number of agents in the rollout. */
  readonly agents: number;
}

interface Chosen extends Pick<RolloutHead, 'assignment' | 'selector'> {
  readonly agents: readonly AgentRow[];
}

/**
 * Returns the agents of a target as of now: approved ones by name, or the named ones in their order. Throws
 * `assignment_not_found`, `invalid_selector`, or `agent_not_found` with every unknown node ID.
 * @param readable agents to choose from; null for all
 */
export async function chooseAgents(
  db: Queryable,
  target: RolloutTarget,
  readable: ReadonlySet<string> | null,
): Promise<Chosen> {
  const mayRead = ({ node_id }: AgentRow) => readable?.has(node_id) ?? true;
  if (target.kind === 'agents') {
    return { assignment: null, selector: null, agents: await namedAgents(db, target.nodeIds, mayRead) };
  }
  const assigned = target.kind === 'assignment' ? await requireAssignment(db, target.name) : null;
  const parsed = target.kind === 'selector' ? parseSelector(target.selector) : assigned && selectorOf(assigned);
  if (parsed === null) throw new Error('a target has neither a selector nor an assignment');
  const agents = (await selectedAgents(db, parsed)).filter(mayRead);
  return { assignment: assigned?.name ?? null, selector: parsed.text, agents };
}

async function namedAgents(
  db: Queryable,
  nodeIds: readonly string[],
  mayRead: (agent: AgentRow) => boolean,
): Promise<readonly AgentRow[]> {
  const wanted = [...new Set(nodeIds)];
  const found = (await findAgents(db, wanted)).filter(mayRead);
  const rows = new Map(found.map((row) => [row.node_id, row]));
  const unknown = wanted.filter((id) => !rows.has(id));
  if (unknown.length > 0) throw unknownAgents(unknown);
  return wanted.flatMap((id) => rows.get(id) ?? []);
}

/** Maximum number of node IDs that a message names. */
const NAMED = 5;

function unknownAgents(nodeIds: readonly string[]): Fault {
  const shown = nodeIds.slice(0, NAMED).map((id) => `"${id}"`);
  const more = nodeIds.length > NAMED ? ` and ${nodeIds.length - NAMED} more` : '';
  return new Fault('agent_not_found', `there is no agent ${shown.join(', ')}${more}`, {
    hint: 'see what there is: orch agents list',
    data: { node_ids: [...nodeIds] },
  });
}

type Deed = 'planned' | 'applied' | 'cancelled';

/** Audit events of rollouts by target. */
const EVENTS = {
  assignment: {
    planned: 'assignment.planned',
    applied: 'assignment.applied',
    cancelled: 'assignment.rollout_cancelled',
  },
  selection: { planned: 'rollout.planned', applied: 'rollout.applied', cancelled: 'rollout.cancelled' },
} as const satisfies Record<string, Record<Deed, DomainEvent['type']>>;

interface Begun {
  readonly deed: Exclude<Deed, 'cancelled'>;
  /** Modules that the request names. */
  readonly modules: readonly string[];
  readonly sent: readonly SentModule[];
  readonly oneOff: GivenOneOff | null;
}

/** Returns the audit event of a rollout that begins. */
export function begunEvent(
  head: RolloutHead,
  { deed, modules, sent, oneOff }: Begun,
  context: RequestContext,
): DomainEvent {
  const { suffix, metadata } = sentNote(sent);
  const own = oneOffNote(inputsOfRequest(oneOff));
  const what = head.assignment === null ? contentOf(modules) : `assignment ${head.assignment}`;
  const chosen = head.assignment === null && head.selector !== null ? ` (${head.selector})` : '';
  return eventOfRequest(context, {
    type: EVENTS[subjectOf(head)][deed],
    target: partyOf(head),
    summary: `${context.actor.name} ${deed} ${what} on ${countOf(head)}${chosen}${suffix}${own.suffix}`,
    metadata: {
      rollout_id: head.id,
      agents: head.agents,
      selector: head.selector,
      modules: [...modules],
      ...metadata,
      ...own.metadata,
    },
  });
}

/** Returns the audit event of a rollout that an operator cancels. */
export function cancelledEvent(head: RolloutHead, context: RequestContext): DomainEvent {
  const what = head.assignment === null ? `on ${countOf(head)}` : `of assignment ${head.assignment}`;
  return eventOfRequest(context, {
    type: EVENTS[subjectOf(head)].cancelled,
    target: partyOf(head),
    summary: `${context.actor.name} cancelled a rollout ${what}`,
    metadata: { rollout_id: head.id },
  });
}

/** Returns what a stored rollout is about. */
export const headOf = ({ rollout_id, assignment, selector, counts }: Stored): RolloutHead => ({
  id: rollout_id,
  assignment,
  selector,
  agents: counts.agents,
});

type Stored = Pick<RolloutRecord, 'rollout_id' | 'assignment' | 'selector' | 'counts'>;

const CHANGES = {
  'rollout.paused': 'paused',
  'rollout.resumed': 'resumed',
  'rollout.retried': 'retried',
  'rollout.halted': 'has halted',
  'rollout.succeeded': 'has succeeded',
  'rollout.failed': 'has failed',
  'rollout.reverted': 'was reverted',
} as const satisfies Partial<Record<DomainEvent['type'], string>>;

interface StateChange {
  readonly actor: Party;
  readonly reason: string | null;
}

/** Returns the audit event of a rollout that changes its state. */
export function stateEvent(
  rollout: RolloutRecord,
  type: keyof typeof CHANGES,
  { actor, reason }: StateChange,
): DomainEvent {
  const head = headOf(rollout);
  const { agents: _, ...counts } = rollout.counts;
  const what = head.assignment === null ? '' : ` of assignment ${head.assignment}`;
  const chosen = head.assignment === null && head.selector !== null ? ` (${head.selector})` : '';
  const subject = `a rollout${what} on ${countOf(head)}${chosen}`;
  const verb = CHANGES[type];
  const done = actor.type === 'operator' ? `${actor.name} ${verb} ${subject}` : `${subject} ${verb}`;
  return {
    type,
    actor,
    target: { id: head.id, name: head.assignment ?? head.selector ?? countOf(head), type: 'rollout' },
    summary: reason === null ? done : `${done}: ${reason}`,
    metadata: { rollout_id: head.id, assignment: head.assignment, selector: head.selector, reason, counts },
  };
}

/** Returns the audit event of a request that changes a rollout. */
export const requestedEvent = (
  run: RolloutRecord,
  type: 'rollout.paused' | 'rollout.resumed' | 'rollout.retried',
  { context, reason }: { readonly context: RequestContext; readonly reason: string | null },
): DomainEvent => {
  const { actor, ...event } = stateEvent(run, type, { actor: context.actor, reason });
  return eventOfRequest(context, event);
};

const subjectOf = ({ assignment }: RolloutHead) => (assignment === null ? 'selection' : 'assignment');

const partyOf = (head: RolloutHead): Party =>
  head.assignment === null
    ? { id: head.id, name: head.selector ?? countOf(head), type: 'rollout' }
    : assignmentParty(head.assignment);

const contentOf = (modules: readonly string[]): string =>
  modules.length === 0 ? 'the assigned modules' : listModules(modules);

const countOf = ({ agents }: RolloutHead): string => (agents === 1 ? '1 agent' : `${agents} agents`);
