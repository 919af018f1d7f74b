/** Stores the beginning, results and end of applies, in one transaction with their audit events. */
import { summarize } from '../../../src/resources/result.js';
import { type ItemResult, shortened } from '../../../src/resources/run-results.js';
import type { RunContent } from '../../../src/wire/parts.js';
import type { Core } from '../../core/core.js';
import { eventOfRequest, type Party, type RequestContext, SYSTEM } from '../../core/domain-event.js';
import type { Queryable } from '../../database/schema.js';
import { type AgentSecrets, noteSecretUse } from '../agent-secrets.js';
import type { DesiredSet } from '../applies/desired-set.js';
import { latestDriftState } from '../drift/drift-store.js';
import type { Epoch } from '../epoch.js';
import { sentNote } from '../modules/current-modules.js';
import { addOperationSources, type ModuleText } from '../modules/source-store.js';
import { approvedAgent, type KnownAgent } from '../runs/agent-gate.js';
import { type EncodedContent, putRunContent } from '../runs/run-contents.js';
import {
  believedEnd,
  confirmBelievedState,
  type FoundDrift,
  foundDrift,
  isWholeSuccess,
  saveBelievedState,
} from '../state/believed-state.js';
import type { Trials } from '../state/trials.js';
import { oneOffNote } from '../values/one-off-request.js';
import { type GivenOneOff, putOneOffValues } from '../values/one-off-store.js';
import { type EndedBy, endEvent, isEnd, repairEvent, restoresMetadata, targetOf, wantedText } from './apply-events.js';
import { LiveOperation, type OperationFacts, type OperationRecord, type Undoing } from './live-operations.js';
import { type OutputCipher, saveOutputs } from './operation-outputs.js';
import { type OperationState, transition } from './operation-state.js';
import {
  beginOperation,
  endOperation,
  insertOperationResults,
  type OperationResultRow,
  updateOperation,
} from './operation-store.js';

interface OperationRecordsOptions extends Pick<Core, 'clock' | 'db' | 'uow'> {
  readonly epoch: Epoch;
  readonly secrets: AgentSecrets;
  readonly outputCipher: OutputCipher;
  readonly trials: Trials;
}

/** An apply that has been accepted. */
export interface NewOperation extends Pick<OperationFacts, 'expect' | 'sources'> {
  readonly id: string;
  readonly agent: KnownAgent;
  readonly desired: DesiredSet;
  /** Its rollout, with what that stores in the same transaction; null outside a rollout. */
  readonly rollout: { readonly id: string; onStored(tx: Queryable, operationId: string): Promise<void> } | null;
  readonly undoing: Undoing;
  /** Content with secrets. */
  readonly dispatch: RunContent;
  /** True when the operation is sent right after it is stored. */
  readonly isSentAtOnce: boolean;
  /** Texts of its sources that are not stored yet. */
  readonly texts: readonly ModuleText[];
  /** Values that came with the request; null for none. */
  readonly oneOff: GivenOneOff | null;
  /** True if it may begin outside the maintenance windows of its assignments. */
  readonly outsideWindow: boolean;
  /** Maximum entries that its purges may delete together; null without purges. */
  readonly mayPurge: number | null;
}

export class OperationRecords {
  private readonly options: OperationRecordsOptions;

  constructor(options: OperationRecordsOptions) {
    this.options = options;
  }

  /**
   * Stores a new apply before any other part knows it. Throws `agent_not_approved`, `agent_not_found` or `secret_unavailable` as
   * of this transaction.
   */
  async create(operation: NewOperation, context: RequestContext): Promise<LiveOperation> {
    const { uow, clock, epoch, secrets } = this.options;
    const { id, agent, desired, rollout, dispatch, sources } = operation;
    const { content, encoded, facts, isConfirmation } = desired;
    const queued: OperationState = { state: 'queued' };
    const state = operation.isSentAtOnce ? transition(queued, { type: 'sent' }) : queued;
    const number = epoch.next();
    const isOwn = operation.oneOff !== null && desired.valueInputs.length > 0;
    const record: OperationRecord = {
      operation_id: id,
      node_id: agent.nodeId,
      node_name: agent.row.name,
      modules: desired.names,
      assignments: desired.assignments,
      restores: desired.restores,
      requested_by: context.actor.id,
      request_id: context.requestId,
      started_at: clock.now(),
      ...number,
      rollout_id: rollout?.id ?? null,
      expect: operation.expect,
      // Values that do not concern the agent change nothing about it.
      value_inputs: isOwn ? desired.valueInputs : null,
      values_sha256: isOwn ? operation.oneOff.sha256 : null,
      may_purge: operation.mayPurge,
      outside_window: operation.outsideWindow ? 1 : 0,
      ...operation.undoing,
    };
    const total = content.resources.length + content.removals.length + content.failures.length;
    const summary = { ...summarize([]), total };
    const unchanged = { finished_at: null, cancelled_by: null, checks: null, restored: null };
    const { live, onCommitted } = await uow.write(async (tx, emit) => {
      const onCommitted = await epoch.reserve(tx, number);
      const contentId = await begin(tx, { ...record, ...columnsOf(state), ...unchanged, summary, facts }, encoded);
      const live = new LiveOperation({
        facts: { ...record, sources, endsTrial: agent.row.trial_operation_id !== null },
        state,
        cancelledBy: null,
        content,
        contentId,
        dispatch,
        // Secrets are longer than their masks.
        size: Object.keys(content.secrets).length === 0 ? encoded.json.length : null,
        isConfirmation,
        outcomes: [],
        now: clock.monotonic(),
      });
      if (sources.length > 0) await addOperationSources(tx, id, operation);
      if (isOwn) await putOneOffValues(tx, operation.oneOff);
      await rollout?.onStored(tx, id);
      emit(startEvent(live, context));
      if (operation.isSentAtOnce && holdsSecrets(live)) {
        const approved = await approvedAgent(tx, agent.nodeId);
        await noteSecretUse({ tx, emit, secrets }, { agent: approved, actor: context.actor, ...useOf(live) });
      }
      return { live, onCommitted };
    });
    onCommitted();
    return live;
  }

  /**
   * Emits the audit events for the secrets of a queued apply that is about to be sent. Throws `secret_unavailable` when the agent
   * may no longer have one of them.
   */
  async noteDispatch(operation: LiveOperation): Promise<void> {
    const { uow, secrets } = this.options;
    if (!holdsSecrets(operation)) return;
    await uow.write(async (tx, emit) => {
      const agent = await approvedAgent(tx, operation.nodeId);
      await noteSecretUse({ tx, emit, secrets }, { agent, actor: SYSTEM, ...useOf(operation) });
    });
  }

  /** Stores a non-final state, then sets it; by default stores the current state. */
  async saveState(operation: LiveOperation, state: OperationState = operation.state): Promise<void> {
    await this.options.uow.write((tx) => updateOperation(tx, operation.id, columnsOf(state)));
    operation.state = state;
    operation.unsaved = false;
  }

  /** Stores that the agent has come back after an apply, before the agent learns it. */
  async saveConfirmation(operation: LiveOperation): Promise<void> {
    const { uow, clock } = this.options;
    await uow.write((tx) => updateOperation(tx, operation.id, { confirmed_at: clock.now() }));
  }

  async saveCancellation(operation: LiveOperation, by: Party): Promise<void> {
    await this.options.uow.write((tx) => updateOperation(tx, operation.id, { cancelled_by: by }));
    operation.cancelledBy = by;
  }

  /** Stores the waiting results with their outputs, and the state if it is not stored yet. */
  async saveResults(operation: LiveOperation): Promise<void> {
    const { state } = operation;
    const { entries } = operation.unstored;
    await this.options.uow.write(async (tx) => {
      if (operation.unsaved) await updateOperation(tx, operation.id, columnsOf(state));
      await this.insertWaiting(tx, operation, []);
    });
    operation.unsaved = false;
    operation.noteStored(entries.length);
  }

  /** Stores the waiting results with their outputs, and others behind them. Returns the rows of the results. */
  private async insertWaiting(
    tx: Queryable,
    operation: LiveOperation,
    others: readonly ItemResult[],
  ): Promise<readonly OperationResultRow[]> {
    const { outputCipher: cipher } = this.options;
    const { first, entries } = operation.unstored;
    const short = shortened(entries, operation.content.resources);
    const rows = await insertOperationResults(tx, operation.id, first, [...short, ...others]);
    const isSecret = (index: number) => operation.isSecret(index);
    await saveOutputs(tx, { operationId: operation.id, first, entries, isSecret, cipher });
    return rows;
  }

  /**
   * Stores an end with the waiting results and the changes to the believed state. Emits no second event when an interrupted
   * operation ends as interrupted again.
   */
  async saveEnd(operation: LiveOperation, end: OperationState, by: EndedBy): Promise<void> {
    if (!isEnd(end)) throw new Error(`${end.state} is no end of operation ${operation.id}`);
    const { db, uow, clock, trials } = this.options;
    const finishedAt = clock.now();
    // A missing report is unknown, and not the same as a check that did not run.
    const checks = by === 'agent' ? operation.checks : null;
    operation.reportedFailures = isReported(operation, end, by) ? operation.content.failures : [];
    const { state, error } = columnsOf(end);
    const { restored } = operation;
    const ended = { state, error, finished_at: finishedAt, summary: operation.summary(), checks, restored };
    let settled: LiveOperation['settled'] = [];
    /** @param change returns the drift of the agent at this moment, or null, without a change, when another one is needed */
    const save = (change: (tx: Queryable) => Promise<FoundDrift | null>) =>
      uow.write(async (tx, emit) => {
        const found = await change(tx);
        if (found === null) return null;
        const repaired = end.state === 'succeeded' ? await repairedDrift(tx, operation, found) : null;
        const rows = await this.insertWaiting(tx, operation, unsentResults(operation));
        await endOperation(tx, operation.id, ended);
        if (isCarriedOut(operation, end)) settled = await trials.settle({ tx, emit }, operation);
        else if (end.state !== 'interrupted') await trials.drop(tx, operation);
        if (end.state !== operation.state.state) emit(endEvent(operation, end, by));
        if (repaired !== null) emit(repairEvent(operation, repaired));
        return rows;
      });
    const isConfirmed = end.state === 'succeeded' && operation.isConfirmation && isWholeSuccess(operation);
    let rows = isConfirmed ? await save((tx) => confirmBelievedState(tx, operation)) : null;
    if (rows === null && changesBelief(operation, end)) {
      const believed = await believedEnd(db, operation, finishedAt);
      rows = await save(async (tx) => {
        const found = await foundDrift(tx, operation.nodeId);
        await saveBelievedState(tx, believed, isApplied(operation, end));
        return found;
      });
    }
    rows ??= await save((tx) => foundDrift(tx, operation.nodeId));
    operation.state = end;
    operation.unsaved = false;
    operation.settled = settled;
    operation.noteEnd(ended, rows ?? []);
  }
}

/**
 * Returns false for an end after which the agent is as before the apply, or will be: one with a confirmation is undone unless the
 * agent says that it succeeded, even if it counts as failed here.
 */
const changesBelief = ({ facts, isKept }: LiveOperation, { state }: OperationState): boolean =>
  isKept || state === 'succeeded' || (state !== 'rolled_back' && facts.confirm_secs === null);

/** Returns true for an end after which the machine has what the apply brought, at least in part. */
const isCarriedOut = (operation: LiveOperation, end: OperationState): boolean =>
  changesBelief(operation, end) && (end.state === 'succeeded' || operation.outcomes.length > 0);

/**
 * Stores a new operation, and its content unless that is there. Returns the ID of the content. Throws `agent_not_found` or
 * `agent_not_approved`.
 */
async function begin(
  tx: Queryable,
  operation: Parameters<typeof beginOperation>[1],
  encoded: EncodedContent,
): Promise<number> {
  const known = await beginOperation(tx, operation, encoded.sha256);
  if (known === undefined) {
    const { nodeId } = await approvedAgent(tx, operation.node_id);
    throw new Error(`the apply of agent ${nodeId} was not stored`);
  }
  if (known !== null) return known;
  const content_id = await putRunContent(tx, encoded);
  await updateOperation(tx, operation.operation_id, { content_id });
  return content_id;
}

/** Returns the ID of the check whose drift a successful apply repairs, or null. Must be called before the end is stored. */
async function repairedDrift(
  tx: Queryable,
  { nodeId }: LiveOperation,
  { created_id, drifted_id }: FoundDrift,
): Promise<string | null> {
  if (drifted_id === null) return null;
  return (await latestDriftState(tx, { nodeId, since: created_id })) === 'drifted' ? drifted_id : null;
}

const holdsSecrets = ({ content }: LiveOperation): boolean => Object.keys(content.secrets).length > 0;

function startEvent(operation: LiveOperation, context: RequestContext) {
  const { facts } = operation;
  const target = targetOf(operation);
  const sent = sentNote(facts.restores === null ? facts.sources : []);
  const own = oneOffNote(facts.value_inputs ?? []);
  return eventOfRequest(context, {
    type: 'state.apply_started',
    target,
    summary: `${context.actor.name} started an apply of ${wantedText(facts)} on ${target.name || target.id}${sent.suffix}${own.suffix}`,
    metadata: {
      operation_id: facts.operation_id,
      modules: [...facts.modules],
      ...restoresMetadata(facts.restores),
      ...sent.metadata,
      ...own.metadata,
    },
  });
}

const useOf = ({ facts, content }: LiveOperation) => ({
  names: Object.keys(content.secrets),
  purpose: 'an apply',
  metadata: { operation_id: facts.operation_id, requested_by: facts.requested_by, request_id: facts.request_id },
});

/** Returns true for an end with results: the agent carried out the run, at least in part. */
const isReported = ({ outcomes }: LiveOperation, end: OperationState, by: EndedBy): boolean =>
  by === 'agent' &&
  end.state !== 'interrupted' &&
  (outcomes.length > 0 || end.state !== 'failed' || end.error === null);

/** Returns true when all was applied, even if a health check failed afterwards. */
const isApplied = (operation: LiveOperation, end: OperationState): boolean =>
  end.state === 'succeeded' ||
  (end.state === 'failed' && end.error?.code === 'verify_failed' && isWholeSuccess(operation));

/** Returns the results of removals that were not sent, with indices after those of the run. */
const unsentResults = ({ reportedFailures, items }: LiveOperation): ItemResult[] =>
  reportedFailures.map((result, offset) => ({ index: items.count + offset, existed: null, result }));

/** Returns the columns of a state. A final state leaves `accepted` unchanged. */
function columnsOf(state: OperationState) {
  const accepted = state.state === 'running' || (state.state === 'recovering' && state.accepted);
  return {
    state: state.state,
    error: 'error' in state ? state.error : null,
    ...(isEnd(state) ? {} : { accepted: Number(accepted) }),
  };
}
