/** How operations are shown. */
import type { Operation, OperationDetail } from '../../../contract/operations.js';
import { formatAge, formatDuration, formatTime, orNone } from '../../format.js';
import type { NameOfOperator } from '../../operator-names.js';
import { countLines, planLines } from '../../render/plan.js';
import { fieldsOf, linesOf, type Span, stack, styled, type TableView, type View } from '../../view.js';

export interface OperationViewOptions {
  readonly nameOf: NameOfOperator;
  /** Unix milliseconds. */
  readonly now: number;
  /** Only some operations were asked for, so that there may be others. */
  readonly filtered: boolean;
}

export const operationTable = (
  operations: readonly Operation[],
  { nameOf, now, filtered }: OperationViewOptions,
): TableView => ({
  kind: 'table',
  columns: [
    { title: 'OPERATION ID', whole: true },
    { title: 'AGENT' },
    { title: 'STATUS', whole: true },
    { title: 'CHANGED', right: true, whole: true },
    { title: 'FAILED', right: true, whole: true },
    { title: 'STARTED' },
    { title: 'MODULES' },
    { title: 'AT', wide: true },
    { title: 'TOOK', wide: true },
    { title: 'BY', wide: true },
    { title: 'ERROR', wide: true },
  ],
  rows: operations.map((operation) => [
    operation.operation_id,
    operation.node_name ?? operation.node_id,
    operationStatus(operation.status),
    String(operation.summary.changed),
    String(operation.summary.failed),
    formatAge(operation.started_at, now),
    orNone(operation.modules.join(' ')),
    formatTime(operation.started_at),
    orNone(durationOf(operation)),
    nameOf(operation.requested_by),
    orNone(operation.error?.message),
  ]),
  empty: filtered
    ? 'No such operations. See the newest with: orch ops'
    : 'No operations. Begin one with: orch apply NODE -f FILE',
});

export const operationDetails = (operation: OperationDetail, nameOf: NameOfOperator, verbose: boolean): View =>
  stack(
    fieldsOf([
      ['Operation', operation.operation_id],
      ['Agent', operation.node_name ?? operation.node_id],
      ['Status', operationStatus(operation.status)],
      ['Modules', orNone(operation.modules.join(' '))],
      ...(operation.assignments.length === 0 ? [] : [['Assignments', operation.assignments.join(' ')] as const]),
      ...(operation.rollout_id === null ? [] : [['Rollout', operation.rollout_id] as const]),
      ['Requested by', nameOf(operation.requested_by)],
      ['Started', formatTime(operation.started_at)],
      ['Finished', orNone(formatTime(operation.finished_at))],
      ...(operation.error === null ? [] : [['Error', styled('bad', operation.error.message)] as const]),
    ]),
    linesOf([
      ...planLines(operation.resources, { verbose, details: true }),
      ...countLines('apply', operation, operation.finished_at !== null),
    ]),
  );

export function operationStatus(status: Operation['status']): Span {
  if (status === 'succeeded') return styled('good', status);
  if (status === 'queued' || status === 'running') return styled('accent', status);
  return styled(status === 'cancelled' ? 'warn' : 'bad', status);
}

const durationOf = ({ started_at, finished_at }: Operation): string | null =>
  finished_at === null ? null : formatDuration(Math.max(0, finished_at - started_at));
