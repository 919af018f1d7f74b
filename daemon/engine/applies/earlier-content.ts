/** The desired state of an earlier operation, for an apply that brings it back. */
import { NOTHING } from '../../../src/contract/run-targets.js';
import { Fault } from '../../../src/kernel/fault.js';
import { CATALOGUE } from '../../../src/resources/catalogue.js';
import type { DesiredCheck } from '../../../src/resources/checks/check.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { withoutRemovalTriggers } from '../../../src/resources/listeners.js';
import type { Queryable } from '../../database/schema.js';
import { parseState, statusOf } from '../operations/operation-state.js';
import { findOperation, type OperationRow, operationNotFound } from '../operations/operation-store.js';
import { agentLabel, type KnownAgent } from '../runs/agent-gate.js';
import type { RunContents } from '../runs/run-contents.js';
import type { SecretHashes } from '../state/secret-hashes.js';

/** The content that an apply brings back: the desired state of the operation with this ID, or nothing. */
export type ApplyTarget = string | { readonly nothing: true };

/** Returns the stored form of a target. */
export const restoresOf = (to: ApplyTarget): string => (typeof to === 'string' ? to : NOTHING);

/** A desired state that was applied before. */
export interface EarlierContent {
  readonly modules: readonly string[];
  /** With masks in the place of secrets, in the order of application. */
  readonly resources: readonly DesiredResource[];
  /** Its health checks, with masks as well. */
  readonly verify: readonly DesiredCheck[];
  /** Hashes of the secrets that it was applied with. */
  readonly secrets: SecretHashes;
  /** Origin for messages, such as `operation 01J…`. */
  readonly label: string;
  readonly notes: readonly string[];
}

const NO_CONTENT: EarlierContent = {
  modules: [],
  resources: [],
  verify: [],
  secrets: {},
  label: 'no desired state',
  notes: [],
};

/**
 * Returns the desired state of an earlier operation of the agent. Throws `operation_not_found`, and `operation_unsuitable` for
 * an operation of another agent, one of a removed agent with the same key, and one without a usable content.
 */
export async function earlierContent(
  db: Queryable,
  contents: RunContents,
  { agent, to }: { readonly agent: KnownAgent; readonly to: ApplyTarget },
): Promise<EarlierContent> {
  if (typeof to !== 'string') return NO_CONTENT;
  const operation = await findOperation(db, to);
  if (operation === null)
    throw await operationNotFound(db, to, `it may have been deleted by retention; ${hintFor(agent)}`);
  refuseStranger(operation, agent);
  if (operation.content_id === null) throw unsuitable(to, agent, 'is stored without its desired state');
  const { resources, verify, secrets } = await contents.get(db, operation.content_id);
  const foreign = resources.find(({ kind }) => !CATALOGUE.has(kind));
  if (foreign !== undefined) {
    throw unsuitable(to, agent, `has a resource of the kind ${foreign.kind}, which this version of orch does not know`);
  }
  const label = `operation ${to}`;
  return {
    modules: operation.modules,
    resources: withoutRemovalTriggers(resources),
    verify,
    secrets,
    label,
    notes: notesOf(operation),
  };
}

function refuseStranger({ operation_id, node_id, node_name }: OperationRow, agent: KnownAgent): void {
  if (node_id !== agent.nodeId) {
    throw unsuitable(operation_id, agent, `is one of another agent, ${node_name ?? node_id}`);
  }
  if (operation_id < agent.row.created_id) {
    throw unsuitable(operation_id, agent, 'is one of an agent with the same key that has been removed since');
  }
}

/** Says that an unsuccessful operation has not brought its desired state about. */
function notesOf(operation: OperationRow): readonly string[] {
  const status = statusOf(parseState(operation).state);
  if (status === 'succeeded') return [];
  const verb = status === 'failed' ? 'failed' : status === 'queued' ? 'has not begun' : `is ${status}`;
  return [`operation ${operation.operation_id} ${verb}: its desired state may never have been reached on this machine`];
}

const hintFor = (agent: KnownAgent): string => `see its operations: orch ops list --agent ${agentLabel(agent)}`;

const unsuitable = (operationId: string, agent: KnownAgent, why: string): Fault =>
  new Fault('operation_unsuitable', `${agentLabel(agent)} cannot go back to operation ${operationId}: it ${why}`, {
    hint: hintFor(agent),
    data: { operation_id: operationId },
  });
