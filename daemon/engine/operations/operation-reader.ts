/** Reads operations, and follows those in progress. */

import { setImmediate } from 'node:timers/promises';
import {
  OPERATION_LIST_LIMIT,
  type Operation,
  type OperationDetail,
  type operationRoutes,
} from '../../../src/contract/operations.js';
import type { Right } from '../../../src/contract/rights.js';
import type { AnswerOf } from '../../../src/contract/route.js';
import type { RunResult } from '../../../src/contract/runs.js';
import { clampLimit } from '../../../src/contract/shapes.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { Output, ResourceResult } from '../../../src/resources/result.js';
import type { ItemResult } from '../../../src/resources/run-results.js';
import type { Core } from '../../core/core.js';
import { notGranted, type Rights } from '../../core/rights.js';
import type { Machines } from '../../fleet/machines.js';
import { throughOutages } from '../../fleet/through-outages.js';
import type { Handler, HandlersFor } from '../../http/handler.js';
import { nextByNumber } from '../../http/query-string.js';
import type { Applies } from '../applies/applies.js';
import { selectedNodeIds } from '../assignments/assignment-store.js';
import { findText, type OperationSource, sourcesOfOperation } from '../modules/source-store.js';
import { knownAgent } from '../runs/agent-gate.js';
import type { RunContents } from '../runs/run-contents.js';
import type { StateReader } from '../state/state.js';
import { triedSources } from '../state/trials.js';
import { findOneOffValues } from '../values/one-off-store.js';
import type { LiveOperation, LiveOperations } from './live-operations.js';
import type { News, OperationFeed } from './operation-feed.js';
import { type OutputCipher, readOutputs } from './operation-outputs.js';
import { operationView, statesOf, statusOf } from './operation-state.js';
import {
  countOperations,
  findOperation,
  listOperationResults,
  listOperations,
  type OperationEnd,
  type OperationResultRow,
  type OperationRow,
  operationNotFound,
  positionAfter,
  resultsOf,
} from './operation-store.js';

interface OperationReaderOptions extends Pick<Core, 'clock' | 'db'> {
  readonly live: LiveOperations;
  readonly feed: OperationFeed;
  readonly outputCipher: OutputCipher;
  readonly contents: RunContents;
  readonly machines: Machines;
}

interface OperationPageRequest {
  readonly limit: number;
  readonly offset: number;
  readonly status: Operation['status'] | null;
  /** Only operations of this rollout. */
  readonly rollout?: string | null;
  /** Selector of agents; only their operations. */
  readonly filter?: string | null;
  readonly rights: Rights;
}

interface FollowOptions {
  readonly signal: AbortSignal;
  /** Waits for a silent agent without limit; otherwise silence throws `agent_timeout`. */
  readonly ignoresSilence: boolean;
  /** Called with the seconds left once everything is applied and the agent has to come back. */
  readonly onAwaiting?: (leftSecs: number) => Promise<void>;
}

interface FinishedOptions extends FollowOptions {
  readonly remarks: Remarks;
  readonly onResult: (result: ResourceResult) => Promise<void>;
}

/** The remarks of the start of an apply. */
interface Remarks {
  readonly warnings: RunResult['warnings'];
  readonly notes: readonly string[];
  readonly endsTrial: readonly string[];
}

export type EndedOperation = Pick<Operation, 'operation_id' | 'status' | 'summary' | 'error'>;

/** Rows of results read at a time. */
const PAGE = 500;

export class OperationReader {
  private readonly options: OperationReaderOptions;

  constructor(options: OperationReaderOptions) {
    this.options = options;
  }

  /** Returns an operation. Throws `operation_not_found`. */
  async get(operationId: string): Promise<Operation> {
    return this.view(await this.head(operationId));
  }

  /** Returns an operation with its results. Throws `operation_not_found`. */
  async detail(operationId: string): Promise<OperationDetail> {
    const head = await this.head(operationId);
    const items: ItemResult[] = [];
    for await (const page of this.storedFrom(head, 0, null)) items.push(...page.items);
    const { db } = this.options;
    const sources = await sourcesOfOperation(db, operationId);
    const values = (await findOneOffValues(db, head.values_sha256))?.texts;
    return { ...detailOf(this.view(head), { checks: head.checks, items, sources }), ...(values && { values }) };
  }

  /** Returns an apply that is in memory, as it is now. */
  now(operation: LiveOperation): Operation {
    return viewOf(operation, operation.stored?.end ?? startOf(operation));
  }

  /** Returns the response to an apply that was just stored. Reads nothing, because the store may be away by now. */
  begun(operation: LiveOperation, remarks: Remarks): RunResult {
    const { stored } = operation;
    const items = itemsOf(operation, stored?.results ?? []);
    const parts = { checks: stored?.end.checks ?? null, items, sources: operation.settled };
    return resultOf(detailOf(this.now(operation), parts), remarks);
  }

  /**
   * Returns the response to an apply, with the results so far; with a signal it waits while the store is away. Throws
   * `operation_not_found`.
   */
  async result(
    operationId: string,
    { remarks = {}, signal = null }: { readonly remarks?: Partial<Remarks>; readonly signal?: AbortSignal | null } = {},
  ): Promise<RunResult> {
    const detail = await throughOutages(
      () => this.detail(operationId),
      () => signal?.aborted ?? true,
    );
    return resultOf(detail, remarks);
  }

  /**
   * Follows an apply that was just started to its end. Returns the response to it, without the store if all results arrived with
   * the end. While the store is away it waits. Throws as `follow` does.
   * @param onResult called with each result, in the order they arrive
   */
  async finished(operation: LiveOperation, { remarks, onResult, ...options }: FinishedOptions): Promise<RunResult> {
    for await (const result of this.followLive(operation, options)) await onResult(result);
    if (operation.stored !== null && operation.stored.results !== null) return this.begun(operation, remarks);
    return this.result(operation.id, { remarks, signal: options.signal });
  }

  /** Returns what an agent has on trial, with the texts. Throws `agent_not_found`. */
  async trial(nodeId: string): Promise<SuccessOf<'getTrial'>> {
    const { db } = this.options;
    const { row } = await knownAgent(db, nodeId);
    const modules: SuccessOf<'getTrial'>['modules'] = [];
    for (const { name, sha256, replaces } of await triedSources(db, row.trial_operation_id)) {
      const text = await findText(db, sha256);
      if (text === null) continue;
      const { content, definition } = text;
      const files = definition.files === undefined ? {} : { files: definition.files };
      modules.push({ module: name, sha256, replaces, content, ...files });
    }
    return { operation_id: modules.length === 0 ? null : row.trial_operation_id, modules };
  }

  /** Returns the operations of one agent or all agents, most recent first. Throws `agent_not_found`, `invalid_selector`. */
  async list(page: OperationPageRequest, nodeId?: string) {
    const { db } = this.options;
    const { limit, offset } = page;
    const agent = nodeId === undefined ? {} : await this.agentFilter(nodeId);
    const states = page.status === null ? {} : { states: statesOf(page.status) };
    const nodeIds = page.filter == null ? undefined : await selectedNodeIds(db, page.filter);
    const readable = await this.options.machines.history(page.rights);
    const filter = { ...agent, ...states, rolloutId: page.rollout ?? undefined, nodeIds, readable };
    const rows = await listOperations(db, { ...filter, limit, offset });
    const total = await countOperations(db, filter);
    return { operations: rows.map((row) => this.view(row)), total, limit, offset };
  }

  /**
   * Returns an operation of an agent. Throws `agent_not_found`, and `operation_not_found` also for an operation of another agent.
   */
  async ofAgent(nodeId: string, operationId: string, rights: Rights | null = null): Promise<Operation> {
    const filter = await this.agentFilter(nodeId);
    const head = await findOperation(this.options.db, operationId);
    const isOf = head !== null && head.node_id === filter.nodeId && head.operation_id >= filter.since;
    if (!isOf || (rights !== null && !(await this.options.machines.mayRead(rights, nodeId, operationId)))) {
      throw await operationNotFound(this.options.db, operationId);
    }
    return this.view(head);
  }

  /**
   * Returns the outputs of scripts so far, by `module/identity`. Throws `agent_not_found`, and `operation_not_found` also for an
   * operation of another agent.
   */
  async output(nodeId: string, operationId: string, rights: Rights): Promise<Record<string, Output>> {
    await this.ofAgent(nodeId, operationId, rights);
    return readOutputs(this.options.db, operationId, this.options.outputCipher);
  }

  /**
   * Yields the results of an operation in the order they arrive until its end, stored ones first. Throws `operation_not_found`.
   * Throws `agent_timeout` on silence, and `shutting_down` when the signal is aborted; the operation continues in both cases.
   */
  async *follow(operationId: string, options: FollowOptions): AsyncGenerator<ResourceResult> {
    const operation = this.options.live.get(operationId);
    if (operation !== undefined) yield* this.followLive(operation, options);
    else yield* this.storedResults(await this.head(operationId), options.signal);
  }

  private async *storedResults(head: StoredHead, signal: AbortSignal): AsyncGenerator<ResourceResult> {
    for await (const { items } of this.storedFrom(head, 0, signal)) yield* items.map(({ result }) => result);
  }

  private async *followLive(
    operation: LiveOperation,
    { signal, ignoresSilence, onAwaiting }: FollowOptions,
  ): AsyncGenerator<ResourceResult> {
    const { feed, live, clock } = this.options;
    const { id: operationId } = operation;
    const subscription = feed.subscribe(operationId);
    try {
      let isAwaited = false;
      for (let position = 0, isOver = false; !isOver; ) {
        // Read before the results: an operation that has ended by now adds no more of them.
        isOver = !live.get(operationId)?.isActive;
        const atOnce = isOver && position === 0 ? operation.stored?.results : null;
        if (atOnce != null) {
          yield* itemsOf(operation, atOnce).map(({ result }) => result);
          return;
        }
        if (isOver || operation.unstored.first > position) {
          for await (const page of this.storedFrom(headOf(operation), position, signal)) {
            position = page.end;
            yield* page.items.map(({ result }) => result);
          }
        }
        const until = live.get(operationId)?.awaitedUntil ?? null;
        if (!isOver && until !== null && !isAwaited) {
          isAwaited = true;
          await onAwaiting?.(Math.max(0, Math.round((until - clock.monotonic()) / 1000)));
        }
        if (!isOver) throwNews(operationId, await subscription.next(signal), ignoresSilence);
      }
    } finally {
      subscription.close();
    }
  }

  /**
   * Waits for the end and returns it. Throws `agent_timeout` on silence, `shutting_down` when the signal is aborted, and
   * `operation_not_found`.
   */
  async ended(operationId: string, signal: AbortSignal): Promise<EndedOperation> {
    const { live, feed } = this.options;
    const operation = live.get(operationId);
    const subscription = feed.subscribe(operationId);
    try {
      while (live.get(operationId)?.isActive) throwNews(operationId, await subscription.next(signal), false);
    } finally {
      subscription.close();
    }
    const end =
      operation === undefined || operation.isActive
        ? await this.get(operationId)
        : {
            operation_id: operationId,
            status: statusOf(operation.state.state),
            summary: operation.summary(),
            error: 'error' in operation.state ? operation.state.error : null,
          };
    if (end.status !== 'failed' || end.error !== null) return end;
    return { ...end, error: await this.firstFailure(operationId, signal) };
  }

  /** Throws `operation_not_found` for an operation that the grants hide, and `not_granted` without the right on its machine. */
  async requireRight(operationId: string, right: Right, rights: Rights): Promise<void> {
    if (!rights.isLimited) return;
    const { db, machines } = this.options;
    const { node_id } = await this.head(operationId);
    if (!(await machines.mayRead(rights, node_id, operationId))) throw await operationNotFound(db, operationId);
    const machine = await machines.find(node_id);
    if (machine === null || !rights.may(right, machine)) throw notGranted(right, 'the machine of this operation');
  }

  /** Returns true for an apply in progress. */
  isActive(operationId: string): boolean {
    return this.options.live.get(operationId)?.isActive ?? false;
  }

  /** Returns why an apply failed whose own error is null: its first resource that failed; null if the store does not say. */
  private async firstFailure(operationId: string, signal: AbortSignal): Promise<EndedOperation['error']> {
    const { resources } = await throughOutages(
      () => this.detail(operationId),
      () => signal.aborted,
    );
    const failed = resources.filter(({ status, error }) => status === 'failed' && error !== null);
    const [first] = failed.toSorted(
      (one, other) => Number(isConsequence(one.error)) - Number(isConsequence(other.error)),
    );
    if (first === undefined || first.error === null) return null;
    const { kind, identity, error } = first;
    const others = failed.length - 1;
    const more = others === 0 ? '' : `; ${others} more ${others === 1 ? 'resource' : 'resources'} failed`;
    return { code: error.code, message: `${kind} ${identity}: ${error.message}${more}` };
  }

  /**
   * Yields pages of results, and yields to the event loop between them so that other work can use the store. With a signal it waits
   * while the store is away.
   */
  private async *storedFrom(
    { operation_id, content_id }: StoredHead,
    from: number,
    signal: AbortSignal | null,
  ): AsyncGenerator<{ readonly items: readonly ItemResult[]; readonly end: number }> {
    const { db, contents } = this.options;
    const resources = async () => (content_id === null ? [] : (await contents.get(db, content_id)).resources);
    const read = async (start: number) => {
      const rows = await listOperationResults(db, operation_id, { from: start, limit: PAGE });
      return { rows, sent: rows.some(({ unchanged }) => unchanged !== null) ? await resources() : [] };
    };
    for (let end = from; ; ) {
      const start = end;
      const { rows, sent } = await throughOutages(
        () => read(start),
        () => signal?.aborted ?? true,
      );
      const last = rows.at(-1);
      if (last !== undefined) end = positionAfter(last);
      yield { items: rows.flatMap((row) => resultsOf(row, sent)), end };
      if (rows.length < PAGE) return;
      await setImmediate();
    }
  }

  private async head(operationId: string): Promise<OperationRow> {
    const head = await findOperation(this.options.db, operationId);
    if (head === null) throw await operationNotFound(this.options.db, operationId);
    return head;
  }

  private view(row: OperationRow): Operation {
    const live = this.options.live.get(row.operation_id);
    // The store records an end before the memory does: in between, the stored row is newer.
    if (!live?.isActive || row.finished_at !== null) return operationView(row);
    return operationView({ ...row, state: live.state.state }, live.summary());
  }

  private async agentFilter(nodeId: string) {
    const agent = await knownAgent(this.options.db, nodeId);
    return { nodeId: agent.row.node_id, since: agent.row.created_id };
  }
}

/** True for the failure of a resource that only waited for another one. */
const isConsequence = (error: ResourceResult['error']): boolean => error?.code === 'dependency_failed';

/** An operation as far as reading its results needs it. */
type StoredHead = Pick<OperationRow, 'operation_id' | 'content_id'>;

const headOf = ({ id, contentId }: LiveOperation): StoredHead => ({ operation_id: id, content_id: contentId });

/** Returns the changing columns of an apply that has not ended. */
const startOf = (operation: LiveOperation): Omit<OperationEnd, 'finished_at'> & { readonly finished_at: null } => ({
  state: operation.state.state,
  error: null,
  finished_at: null,
  summary: operation.summary(),
  checks: null,
  restored: null,
});

const viewOf = ({ facts, state }: LiveOperation, end: OperationEnd | ReturnType<typeof startOf>): Operation =>
  operationView({ ...facts, accepted: state.state === 'recovering' ? Number(state.accepted) : 1, ...end });

/** Returns the results of an operation's rows. */
const itemsOf = ({ content }: LiveOperation, rows: readonly OperationResultRow[]): readonly ItemResult[] =>
  rows.flatMap((row) => resultsOf(row, content.resources));

interface DetailParts {
  readonly checks: OperationRow['checks'];
  readonly items: readonly ItemResult[];
  readonly sources: readonly OperationSource[];
}

const detailOf = (view: Operation, { checks, items, sources }: DetailParts): OperationDetail => ({
  ...view,
  resources: [...items].sort((a, b) => a.index - b.index).map(({ result }) => result),
  ...(checks === null ? {} : { checks: [...checks] }),
  ...settledMember(sources),
});

/** Returns the member of sources that are settled, if there are some. */
function settledMember(all: readonly OperationSource[]): Pick<OperationDetail, 'sources'> {
  const sources = all.flatMap(({ name, sha256, status, others }) =>
    status === 'sent' ? [] : [{ module: name, sha256, status, others }],
  );
  return sources.length === 0 ? {} : { sources };
}

/** Returns the response to an apply. */
function resultOf(
  operation: OperationDetail,
  { warnings = [], notes = [], endsTrial = [] }: Partial<Remarks>,
): RunResult {
  const { node_name, kind, assignments, rollout_id, requested_by, values, ...detail } = operation;
  const has_changes = detail.resources.some(({ status }) => status === 'changed');
  const remarks = detail.restores === undefined && notes.length === 0 ? {} : { notes: [...notes] };
  const trial = endsTrial.length === 0 ? {} : { ends_trial: [...endsTrial] };
  return { ...detail, has_changes, warnings: [...warnings], plan_hash: null, ...remarks, ...trial };
}

function throwNews(operationId: string, news: News, ignoresSilence: boolean): void {
  const data = { operation_id: operationId };
  if (news === 'silent' && !ignoresSilence) {
    throw new Fault('agent_timeout', `the agent has said nothing about operation ${operationId} for a while`, {
      hint: `the operation goes on; watch it: orch ops watch ${operationId}`,
      data,
    });
  }
  if (news === 'closed') {
    throw new Fault('shutting_down', `the orchestrator stops; operation ${operationId} goes on`, {
      hint: `watch it when the orchestrator is back: orch ops watch ${operationId}`,
      data,
    });
  }
}

/** Services used by the HTTP handlers of operations and the believed state. */
interface OperationServices {
  readonly applies: Applies;
  readonly operations: OperationReader;
  readonly state: StateReader;
}

type Routes = typeof operationRoutes;
type SuccessOf<Id extends keyof Routes> = Extract<AnswerOf<Routes[Id]>, { readonly status: 200 }>['body'];

export const operationHandlers = ({ applies, operations, state }: OperationServices): HandlersFor<Routes> => ({
  getState: async ({ params }) => ({ status: 200, body: await state.get(params.node_id) }),
  getTrial: async ({ params }) => ({ status: 200, body: await operations.trial(params.node_id) }),
  listAgentOperations: async ({ params: { node_id }, query, rights }) => {
    const body = await operations.list({ ...pageOf(query), rights }, node_id);
    return { status: 200, body, headers: nextByNumber(`/agents/${node_id}/state/operations`, query, body) };
  },
  listOperations: async ({ query, rights }) => {
    const body = await operations.list({ ...pageOf(query), filter: query.filter ?? null, rights });
    return { status: 200, body, headers: nextByNumber('/state/operations', query, body) };
  },
  getOperation: getOperation(operations),
  getOperationOutput: async ({ params: { node_id, operation_id }, rights }) => ({
    status: 200,
    body: { operation_id, output: await operations.output(node_id, operation_id, rights) },
  }),
  cancelOperation: async ({ params, context, rights }) => {
    await operations.requireRight(params.operation_id, 'cancel', rights);
    return { status: 202, body: operations.now(await applies.cancel(params.operation_id, context)) };
  },
});

const getOperation =
  (operations: OperationReader): Handler<Routes['getOperation']> =>
  async (request) => {
    const { params, rights, signal, stream } = request;
    const { operation_id } = params;
    const check = (now: Rights) => operations.requireRight(operation_id, 'read', now);
    await check(rights);
    request.keepPermitted(check);
    if (stream !== null) {
      await operations.get(operation_id);
      await stream({ event: 'started', operation_id });
      const onAwaiting = (left_secs: number) => stream({ event: 'awaiting', left_secs });
      for await (const resource of operations.follow(operation_id, { signal, ignoresSilence: true, onAwaiting })) {
        await stream({ event: 'resource', resource });
      }
      const result = await operations.result(operation_id);
      await stream({ event: 'result', result });
    }
    return { status: 200, body: await operations.detail(operation_id) };
  };

type ListQuery = Parameters<Handler<Routes['listAgentOperations']>>[0]['query'];

const pageOf = ({ limit, offset, status, rollout }: ListQuery) => ({
  limit: clampLimit(limit, OPERATION_LIST_LIMIT.standard, OPERATION_LIST_LIMIT.maximum),
  offset: offset ?? 0,
  status: status ?? null,
  rollout: rollout ?? null,
});
