/** Applies held in memory: those in progress, and interrupted ones whose agent still reports. */

import type { NodeId } from '../../../src/kernel/ids.js';
import type { ItemOutcome } from '../../../src/resources/believed-state.js';
import type { CheckReport, CheckResult } from '../../../src/resources/checks/check.js';
import { isPurge } from '../../../src/resources/purge.js';
import type { Restored } from '../../../src/resources/restored.js';
import { type ResourceResult, type Summary, summarize } from '../../../src/resources/result.js';
import { countResults, type ItemResult, isUnchanged, type Unchanged } from '../../../src/resources/run-results.js';
import { isTainted } from '../../../src/resources/tainted-body.js';
import type { OrchestratorMessage, RunEnd, RunEntry, RunItem } from '../../../src/wire/messages.js';
import { cutRun, type RunContent } from '../../../src/wire/parts.js';
import type { Party } from '../../core/domain-event.js';
import type { OperationSource } from '../modules/source-store.js';
import { RunItems } from '../runs/run-content.js';
import { type StoredContent, sourceOf } from '../runs/run-contents.js';
import { reportedChecks } from './operation-checks.js';
import { itemScrubber } from './operation-outputs.js';
import { isActive, type OperationState } from './operation-state.js';
import type { OperationEnd, OperationResultRow, OperationRow } from './operation-store.js';

export class LiveOperations {
  private readonly byId = new Map<string, LiveOperation>();
  private readonly byNode = new Map<NodeId, Set<LiveOperation>>();

  get(operationId: string): LiveOperation | undefined {
    return this.byId.get(operationId);
  }

  all(): readonly LiveOperation[] {
    return [...this.byId.values()];
  }

  ofNode(nodeId: NodeId): readonly LiveOperation[] {
    return [...(this.byNode.get(nodeId) ?? [])];
  }

  /** Returns an interrupted operation whose agent has not finished its report, or undefined. */
  late(nodeId: NodeId): LiveOperation | undefined {
    return this.ofNode(nodeId).find((operation) => !operation.isActive);
  }

  add(operation: LiveOperation): void {
    this.byId.set(operation.id, operation);
    const siblings = this.byNode.get(operation.nodeId) ?? new Set();
    this.byNode.set(operation.nodeId, siblings.add(operation));
  }

  remove(operation: LiveOperation): void {
    if (this.byId.get(operation.id) === operation) this.byId.delete(operation.id);
    const siblings = this.byNode.get(operation.nodeId);
    siblings?.delete(operation);
    if (siblings?.size === 0) this.byNode.delete(operation.nodeId);
  }
}

/** The columns of an apply that the agent may have to undo. */
export type Undoing = Pick<OperationRow, 'confirm_secs' | 'keeps_snapshot' | 'puts_back'>;

/** Returns true for an apply that only an agent with the feature `confirm` may get. */
export const needsUndoing = ({ confirm_secs, keeps_snapshot, puts_back }: Undoing): boolean =>
  confirm_secs !== null || keeps_snapshot === 1 || puts_back !== null;

/** The columns of an apply that never change. */
export interface OperationRecord
  extends Undoing,
    Pick<
      OperationRow,
      | 'operation_id'
      | 'node_name'
      | 'modules'
      | 'assignments'
      | 'restores'
      | 'requested_by'
      | 'request_id'
      | 'started_at'
      | 'epoch'
      | 'generation'
      | 'rollout_id'
      | 'expect'
      | 'value_inputs'
      | 'values_sha256'
      | 'may_purge'
      | 'outside_window'
    > {
  readonly node_id: NodeId;
}

/** Identity and origin of an apply, which never change. */
export interface OperationFacts extends OperationRecord {
  /** Modules that it carries as texts. */
  readonly sources: readonly OperationSource[];
  /** True if the agent was on trial when it began. */
  readonly endsTrial: boolean;
}

/** A result, in short. */
export interface Outcome extends ItemOutcome {
  readonly action: ResourceResult['action'];
}

interface LiveOperationOptions {
  readonly facts: OperationFacts;
  readonly state: OperationState;
  readonly cancelledBy: Party | null;
  /** Content with masks in the place of secrets. */
  readonly content: StoredContent;
  readonly contentId: number;
  /** Content with secrets, as sent to the agent; null when the secrets are no longer known. */
  readonly dispatch: RunContent | null;
  /** Characters of the content as JSON; null when unknown. */
  readonly size: number | null;
  /** True when the believed state equalled the content at the start. */
  readonly isConfirmation: boolean;
  readonly outcomes: readonly Outcome[];
  /** Monotonic milliseconds. */
  readonly now: number;
}

interface StoredEnd {
  readonly end: OperationEnd;
  /** All results, if they were stored with the end; null if some were stored before. */
  readonly results: readonly OperationResultRow[] | null;
}

/** An apply in progress, or an interrupted one whose agent still sends its journal. */
export class LiveOperation {
  readonly facts: OperationFacts;
  readonly content: StoredContent;
  readonly contentId: number;
  readonly isConfirmation: boolean;
  readonly items: RunItems;
  /** Removes the secrets of the run from reported items, as far as the secrets are still known. */
  readonly scrub: (item: RunItem) => RunItem;
  /** Start of all deadlines in monotonic milliseconds: the time at which this process learned of the operation. */
  readonly since: number;
  state: OperationState;
  cancelledBy: Party | null;
  /** Monotonic milliseconds until which the agent has to come back; null while it does not have to. */
  awaitedUntil: number | null = null;
  /** True once the agent has said that the apply succeeded and stays. */
  isKept = false;
  /** The agent's report of a restore. */
  restored: Restored | null = null;
  /** True while the current state is not saved in the store. */
  unsaved = false;
  /** Position from which results were last requested again; null when none are outstanding. */
  resumedFrom: number | null = null;
  /** Failures of removals that were not sent, once they are among the results. */
  reportedFailures: readonly ResourceResult[] = [];
  /** Time of the agent's last message about it, in monotonic milliseconds. */
  lastMessageAt: number;
  /** The fate of its sources; empty before the end, and for an apply that has changed nothing. */
  settled: readonly OperationSource[] = [];
  /** The record that the end has stored; null before the end. */
  stored: StoredEnd | null = null;
  private readonly taken: Outcome[];
  private waiting: RunEntry[] = [];
  /** Results of the health checks; null before the agent has reported the end, and without checks. */
  checks: readonly CheckResult[] | null = null;
  private readonly dispatch: RunContent | null;
  private readonly size: number | null;

  constructor(options: LiveOperationOptions) {
    const { facts, state, cancelledBy, content, contentId, dispatch, size, isConfirmation, outcomes, now } = options;
    this.facts = facts;
    this.content = content;
    this.contentId = contentId;
    this.isConfirmation = isConfirmation;
    this.items = new RunItems(content);
    this.items.note(outcomes.map(({ index }) => index));
    this.scrub = Object.keys(content.secrets).length === 0 ? (item) => item : itemScrubber(dispatch);
    this.since = now;
    this.lastMessageAt = now;
    this.state = state;
    this.cancelledBy = cancelledBy;
    this.taken = [...outcomes];
    this.dispatch = dispatch;
    this.size = size;
  }

  get id(): string {
    return this.facts.operation_id;
  }

  get nodeId(): NodeId {
    return this.facts.node_id;
  }

  /** False for an interrupted operation whose agent still reports. */
  get isActive(): boolean {
    return isActive(this.state);
  }

  /** Results, in the order they arrived; their count is the position of the next one. */
  get outcomes(): readonly Outcome[] {
    return this.taken;
  }

  /** The last results, which are not stored yet, and the position of the first of them. */
  get unstored(): { readonly first: number; readonly entries: readonly RunEntry[] } {
    return { first: this.taken.length - countResults(this.waiting), entries: this.waiting };
  }

  /** True when every item of the run has a result. */
  get isComplete(): boolean {
    return this.taken.length === this.items.count;
  }

  /** Returns true for an item that was sent with a secret in it. */
  isSecret(index: number): boolean {
    const { resources, removals } = this.content;
    const item = resources[index] ?? removals[index - resources.length];
    return item !== undefined && isTainted(item);
  }

  summary(): Summary {
    return {
      ...summarize([...this.taken, ...this.reportedFailures]),
      total: this.items.count + this.content.failures.length,
    };
  }

  /** Adds checked results, which wait to be stored. */
  add(entries: readonly RunEntry[]): void {
    const outcomes = entries.flatMap((entry) => (isUnchanged(entry) ? outcomesOf(entry) : outcomeOf(entry)));
    this.waiting.push(...entries.map((entry) => (isUnchanged(entry) ? entry : this.scrub(entry))));
    this.taken.push(...outcomes);
    this.items.note(outcomes.map(({ index }) => index));
    this.resumedFrom = null;
  }

  /** Notes that the end is stored, and with it the last rows of results. */
  noteEnd(end: OperationEnd, rows: readonly OperationResultRow[]): void {
    const { first } = this.unstored;
    this.waiting = [];
    this.stored = { end, results: first === 0 ? rows : null };
  }

  /** Notes that the first waiting results are stored. */
  noteStored(entries: number): void {
    this.waiting = this.waiting.slice(entries);
  }

  get hasChecks(): boolean {
    return this.content.verify.length > 0;
  }

  /** True if a resource deletes what nothing declares. */
  get purges(): boolean {
    return this.content.resources.some(isPurge);
  }

  /** True when the agent needs the feature `files`. */
  get takesFiles(): boolean {
    return this.content.resources.some((one) => sourceOf(one) !== null);
  }

  /**
   * Takes the results of the health checks. Throws `protocol_violation` for results of other checks. Those of an interrupted run
   * are unknown unless the agent reports some: it may have ended while they ran.
   */
  takeChecks(reports: readonly CheckReport[], end: RunEnd): void {
    const { content, dispatch } = this;
    const results = reportedChecks({ checks: content.verify, reports, dispatch });
    const isKnown = this.hasChecks && (reports.length > 0 || end !== 'interrupted');
    this.checks = isKnown ? results : null;
  }

  /** Returns the messages that start the apply; null when its secrets are no longer known, so that it cannot be sent. */
  messages(): readonly OrchestratorMessage[] | null {
    if (this.dispatch === null) return null;
    const { epoch, generation, expect, may_purge } = this.facts;
    const head = {
      run_id: this.id,
      mode: 'apply',
      epoch,
      generation,
      short_results: true,
      ...(expect === null ? {} : { expect }),
      ...orderOf(this.facts),
      ...(may_purge === null ? {} : { may_purge }),
    } as const;
    return cutRun(head, this.dispatch, { size: this.size });
  }
}

const orderOf = ({ confirm_secs, keeps_snapshot, puts_back }: Undoing) => ({
  ...(confirm_secs === null ? {} : { confirm_secs }),
  ...(keeps_snapshot === 1 ? { keep_snapshot: true } : {}),
  ...(puts_back === null ? {} : { restore: puts_back }),
});

const outcomesOf = ({ index, count }: Unchanged): Outcome[] =>
  Array.from({ length: count }, (_, offset) => ({
    index: index + offset,
    status: 'unchanged',
    action: 'none',
    existed: true,
  }));

export const outcomeOf = ({ index, result, existed }: ItemResult): Outcome => ({
  index,
  status: result.status,
  action: result.action,
  existed,
});
