/** Builds the audit events of applies. */

import { NOTHING } from '../../../src/contract/run-targets.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import type { Summary } from '../../../src/resources/result.js';
import { type DomainEvent, type EventType, type Party, SYSTEM } from '../../core/domain-event.js';
import { agentParty } from '../../fleet/agent-store.js';
import type { LiveOperation, OperationFacts } from './live-operations.js';
import type { OperationState } from './operation-state.js';

/** Maximum number of modules that a summary names. */
const NAMED = 5;

/** Returns `modules a, b`, `module a` or `no modules`. */
export function listModules(names: readonly string[]): string {
  if (names.length === 0) return 'no modules';
  const shown = names.slice(0, NAMED).join(', ');
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${names.length === 1 ? 'module' : 'modules'} ${shown}${more}`;
}

/** Describes what an apply brings: modules, or the desired state of an earlier operation. */
export function wantedText({ modules, restores }: Pick<OperationFacts, 'modules' | 'restores'>): string {
  if (restores === null) return listModules(modules);
  return restores === NOTHING ? 'no desired state' : `the desired state of operation ${restores}`;
}

/** Returns the metadata of an earlier desired state. */
export const restoresMetadata = (restores: string | null): JsonObject => (restores === null ? {} : { restores });

const ENDS = {
  succeeded: ['state.apply_succeeded', 'succeeded'],
  failed: ['state.apply_failed', 'failed'],
  cancelled: ['state.apply_cancelled', 'was cancelled'],
  interrupted: ['state.apply_interrupted', 'was interrupted'],
  rolled_back: ['state.apply_rolled_back', 'was undone by the agent'],
} as const satisfies Record<string, readonly [EventType, string]>;

type EndState = Extract<OperationState, { state: keyof typeof ENDS }>;

export const isEnd = (state: OperationState): state is EndState => state.state in ENDS;

/** Returns the agent of an operation as the party of an event. */
export const targetOf = ({ facts }: LiveOperation): Party =>
  agentParty({ node_id: facts.node_id, name: facts.node_name });

/** Source of the end: a report of the agent, or the orchestrator giving up. A cancelled apply names its canceller instead. */
export type EndedBy = 'agent' | 'orchestrator';

export function endEvent(operation: LiveOperation, end: EndState, by: EndedBy): DomainEvent {
  const { facts, cancelledBy } = operation;
  const target = targetOf(operation);
  const [type, verb] = ENDS[end.state];
  const error = 'error' in end ? end.error : null;
  const actor = end.state === 'cancelled' && cancelledBy !== null ? cancelledBy : by === 'agent' ? target : SYSTEM;
  const summary = operation.summary();
  const metadata: JsonObject = {
    operation_id: facts.operation_id,
    modules: [...facts.modules],
    ...restoresMetadata(facts.restores),
    ...(facts.value_inputs === null ? {} : { value_inputs: [...facts.value_inputs] }),
    requested_by: facts.requested_by,
    request_id: facts.request_id,
    cancelled_by: cancelledBy?.id ?? null,
    summary: { ...summary },
    error_code: error?.code ?? null,
  };
  const name = target.name === '' ? target.id : target.name;
  const what = `the apply of ${wantedText(facts)} on ${name} ${verb}: ${countsOf(summary)}`;
  return { type, actor, target, summary: what, metadata };
}

/** Returns the event that ends detected drift: after a successful apply, the agent is as applied. */
export function repairEvent(operation: LiveOperation, driftId: string): DomainEvent {
  const target = targetOf(operation);
  const name = target.name === '' ? target.id : target.name;
  return {
    type: 'drift.resolved',
    actor: SYSTEM,
    target,
    summary: `${name} is as it was applied again: an apply succeeded`,
    metadata: { drift_id: driftId, operation_id: operation.id, status: 'in_sync', trigger: 'apply' },
  };
}

/** Returns counts such as `3 changed, 1 failed of 10`. */
function countsOf(summary: Summary): string {
  const counts = (['changed', 'failed', 'skipped'] as const)
    .filter((status) => summary[status] > 0)
    .map((status) => `${summary[status]} ${status}`);
  return `${counts.length === 0 ? 'nothing changed' : counts.join(', ')} of ${summary.total}`;
}
