/** The commands of `orch ops`. */
import type { ApiClient, SuccessBody } from '../../client/api-client.js';
import type { Operation, OperationDetail } from '../../contract/operations.js';
import { Fault } from '../../kernel/fault.js';
import type { ResourceResult } from '../../resources/result.js';
import type { Context } from '../context.js';
import { argument, defineCommand, optionalArgument } from '../define-command.js';
import { formatDuration, formatTime, type TimeCell, textOrNone, timeCells, tookCell } from '../format.js';
import { oneOffFields } from '../modules/one-off-values.js';
import { filterOf, listSelectorOption, refuseBoth } from '../nodes/choose-agents.js';
import { resolveNode } from '../nodes/resolve-node.js';
import { choice, integer, text } from '../options.js';
import {
  type Column,
  fieldsOf,
  headed,
  lines,
  linesOf,
  type Outcome,
  type Span,
  stack,
  stackOf,
  styled,
  type TableView,
  type View,
} from '../outcome.js';
import { type NameOfOperator, operatorNames } from '../record-names.js';
import { checkLines } from '../render/check-lines.js';
import { countLines, outputLines, planLines } from '../render/plan-lines.js';
import { restoredLines } from '../render/undoing-lines.js';
import { createRunProgress, followRun, resumption } from '../runs/follow-run.js';
import { expectingOperation, expectingRollout } from '../runs/other-id.js';
import { restoredName, runOutcome } from '../runs/run-view.js';
import { watchList, watchOption } from '../watch-list.js';
import { cancelOneRollout } from './rollouts.js';

export const operationArgument = argument('ID', 'operation ID, as "orch ops" shows it', 'operation');

/** Statuses for `--status`. The compiler checks them against the contract. */
const statuses = {
  queued: true,
  running: true,
  succeeded: true,
  failed: true,
  interrupted: true,
  cancelled: true,
  rolled_back: true,
} satisfies Readonly<Record<Operation['status'], true>>;

const isStatus = (word: string): word is Operation['status'] => Object.hasOwn(statuses, word);

export const RUN_STATUSES: readonly Operation['status'][] = Object.keys(statuses).filter(isStatus);

const OPERATION_COLUMNS: readonly Column[] = [
  { title: 'OPERATION ID', whole: true },
  { title: 'AGENT' },
  { title: 'STATUS', whole: true },
  { title: 'CHANGED', right: true, whole: true, spare: 1 },
  { title: 'FAILED', right: true, whole: true, spare: 2 },
  { title: 'STARTED' },
  { title: 'MODULES' },
  { title: 'TOOK', wide: true },
  { title: 'BY', wide: true },
  { title: 'ROLLOUT', wide: true },
  { title: 'ERROR', wide: true },
];

/** `orch ops list`. */
export const listOperations = defineCommand({
  examples: ['orch ops', 'orch ops --agent web-01 --status failed', 'orch ops -l role=web --watch'],
  access: 'viewer',
  columns: OPERATION_COLUMNS,
  options: {
    agent: text('NODE', 'filter by agent', { completes: 'node' }),
    selector: listSelectorOption,
    status: choice('STATUS', RUN_STATUSES, 'filter by status'),
    rollout: text('ID', 'filter by rollout', { completes: 'rollout' }),
    limit: integer('N', 'maximum number, newest first [50]', 1),
    offset: integer('N', 'number of newest operations to skip'),
    watch: watchOption,
  },
  run: async (context, { agent, selector, status, rollout, limit, offset, watch }) => {
    refuseBoth('--agent', agent, selector);
    const api = await context.api();
    const query = { status: status ?? null, rollout: rollout ?? null, limit: limit ?? null, offset: offset ?? null };
    const one = agent === undefined ? null : await resolveNode(api, agent, context);
    const read = async (reading: Context): Promise<Outcome> => {
      const { signal } = reading;
      const body = one
        ? await api.call('listAgentOperations', { params: { node_id: one.node_id }, query, signal })
        : await api.call('listOperations', { query: { ...query, ...filterOf(selector) }, signal });
      if (rollout !== undefined && body.total === 0) await requireRollout(reading, api, rollout);
      const shown = body.offset + body.operations.length;
      if (shown < body.total) reading.note(`${shown} of ${body.total}; more with --offset ${shown}`);
      return {
        body,
        records: body.operations,
        names: body.operations.map(({ operation_id }) => operation_id),
        view: operationTable(body.operations, {
          nameOf: await operatorNames(reading, api),
          timeOf: timeCells(reading.clock.now(), reading.globals),
          filtered: [agent, selector, status, rollout, offset].some((given) => given !== undefined),
        }),
      };
    };
    return watch ? watchList(context, api, { read, category: 'state' }) : read(context);
  },
});

/** `orch ops show`. */
export const showOperation = defineCommand({
  examples: ['orch ops show 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  access: 'viewer',
  args: { id: operationArgument },
  run: async (context, { id }) => {
    const api = await context.api();
    const operation = await readOperation(context, api, id);
    if (operation.finished_at !== null) {
      context.note(
        `Go back to this desired state with: orch apply ${operation.node_name ?? operation.node_id} --to ${id}`,
      );
    }
    return {
      body: operation,
      names: [operation.operation_id],
      view: operationDetails(operation, await operatorNames(context, api), context.globals.verbose),
    };
  },
});

/** `orch ops watch`. */
export const watchOperation = defineCommand({
  examples: ['orch ops watch 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['Ctrl-C stops watching; the operation continues.'],
  access: 'viewer',
  args: { id: operationArgument },
  run: async (context, { id }) => {
    const { signal, globals } = context;
    const api = await context.api();
    const params = { operation_id: id };
    const operation = await readOperation(context, api, id);
    const agent = await resolveNode(api, operation.node_id, { signal });
    const progress = createRunProgress(context, 'apply', 1);
    const follower = {
      resource: (resource: ResourceResult) => progress.resource(agent, resource),
      awaiting: (leftSecs: number) => progress.awaiting(agent, leftSecs),
    };
    const result = await followRun(
      api.stream('getOperation', { params, signal }),
      follower,
      resumption(context, api, signal),
    ).finally(() => progress.end());
    return runOutcome([{ agent, result }], { kind: 'apply', detailed: false, verbose: globals.verbose });
  },
});

/** `orch ops cancel`. */
export const cancelOperation = defineCommand({
  examples: ['orch ops cancel 01JQ2Z6T0V5X8Y4M3N7P9R1S2T', 'orch ops cancel --rollout 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['Stops a running script, finishes any other resource in progress, and starts no further one.'],
  access: 'operator',
  args: { id: optionalArgument('ID', 'operation ID, as "orch ops" shows it', 'operation') },
  options: { rollout: text('ID', 'cancel a rollout', { completes: 'rollout' }) },
  run: async (context, { id, rollout }) => {
    const { signal } = context;
    if ((id === undefined) === (rollout === undefined)) {
      throw new Fault('usage', 'name an operation, or a rollout with --rollout: one of them');
    }
    if (rollout !== undefined) return cancelOneRollout(context, rollout);
    const operationId = id ?? '';
    const api = await context.api();
    const params = { operation_id: operationId };
    const operation = await expectingOperation(context, api, operationId, () =>
      api.call('cancelOperation', { params, signal }),
    );
    return {
      body: operation,
      names: [operation.operation_id],
      view: lines(
        `Operation ${operation.operation_id} stops at the next resource. Watch it: orch ops watch ${operation.operation_id}`,
      ),
    };
  },
});

/** `orch ops output`. */
export const showOutput = defineCommand({
  examples: ['orch ops output 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['Control characters are escaped.'],
  access: 'operator',
  args: { id: operationArgument },
  run: async (context, { id }) => {
    const { signal } = context;
    const api = await context.api();
    const { node_id } = await readOperation(context, api, id);
    const body = await api.call('getOperationOutput', { params: { node_id, operation_id: id }, signal });
    const scripts = Object.keys(body.output).sort();
    return {
      body,
      names: scripts,
      view:
        scripts.length === 0
          ? lines('No script of this operation printed anything.')
          : stackOf(scripts.flatMap((name) => outputView(name, body.output[name]))),
    };
  },
});

/** Throws `rollout_not_found`, so that a mistyped ID is no rollout without operations. */
async function requireRollout(context: Context, api: ApiClient, id: string): Promise<void> {
  const params = { rollout_id: id };
  await expectingRollout(context, api, id, () => api.call('getRollout', { params, signal: context.signal }));
}

const readOperation = (context: Context, api: ApiClient, id: string) =>
  expectingOperation(context, api, id, () =>
    api.call('getOperation', { params: { operation_id: id }, signal: context.signal }),
  );

/** `orch ops output`. */
type Output = SuccessBody<'getOperationOutput'>['output'][string];

const outputView = (name: string, output: Output | undefined): readonly View[] =>
  output === undefined ? [] : [headed(name, linesOf(outputLines(output)))];

/** Options of the table of operations. */
export interface OperationViewOptions {
  readonly nameOf: NameOfOperator;
  readonly timeOf: TimeCell;
  /** True if the list was filtered, so that other operations may exist. */
  readonly filtered: boolean;
}

export const operationTable = (
  operations: readonly Operation[],
  { nameOf, timeOf, filtered }: OperationViewOptions,
): TableView => ({
  kind: 'table',
  columns: OPERATION_COLUMNS,
  rows: operations.map((operation) => [
    operation.operation_id,
    operation.node_name ?? operation.node_id,
    operationStatus(operation.status),
    String(operation.summary.changed),
    String(operation.summary.failed),
    timeOf(operation.started_at),
    textOrNone(operation.modules.join(' ')),
    tookCell(operation),
    nameOf(operation.requested_by),
    textOrNone(operation.rollout_id),
    textOrNone(operation.error?.message),
  ]),
  empty: filtered
    ? 'No matching operations. List the newest with: orch ops'
    : 'No operations. Begin one with: orch apply NODE -f FILE',
});

export const operationDetails = (operation: OperationDetail, nameOf: NameOfOperator, verbose: boolean): View =>
  stack(
    fieldsOf([
      ['Operation', operation.operation_id],
      ['Agent', operation.node_name ?? operation.node_id],
      ['Status', operationStatus(operation.status)],
      ['Modules', textOrNone(operation.modules.join(' '))],
      ...(operation.assignments.length === 0 ? [] : [['Assignments', operation.assignments.join(' ')] as const]),
      ...(operation.rollout_id === null ? [] : [['Rollout', operation.rollout_id] as const]),
      ...(operation.restores == null ? [] : [['Back to', restoredName(operation.restores)] as const]),
      ...oneOffFields(operation),
      ['Requested by', nameOf(operation.requested_by)],
      ['Started', formatTime(operation.started_at)],
      ['Finished', textOrNone(formatTime(operation.finished_at))],
      ...(operation.confirm_secs == null ? [] : [['Confirm within', formatDuration(operation.confirm_secs)] as const]),
      ...(operation.error === null ? [] : [['Error', styled('bad', operation.error.message)] as const]),
    ]),
    linesOf([
      ...planLines(operation.resources, { verbose, details: true }),
      ...restoredLines(operation),
      ...countLines('apply', operation, operation.finished_at !== null),
      ...checkLines(operation.checks ?? [], verbose),
    ]),
  );

export function operationStatus(status: Operation['status']): Span {
  if (status === 'succeeded') return styled('good', status);
  if (status === 'queued' || status === 'running') return styled('accent', status);
  return styled(status === 'cancelled' ? 'warn' : 'bad', status);
}
