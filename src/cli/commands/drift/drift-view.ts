/** How drift records are shown. */
import type { DriftDetail, DriftRecord } from '../../../contract/runs.js';
import { formatAge, formatTime } from '../../format.js';
import type { NameOfOperator } from '../../operator-names.js';
import { countLines, planLines } from '../../render/plan.js';
import { fieldsOf, linesOf, type Span, stack, styled, type TableView, type View } from '../../view.js';

export interface DriftTableOptions {
  /** The agent's name, or its ID. */
  nameOf(nodeId: string): string;
  /** Unix milliseconds. */
  readonly now: number;
  /** Only some records were asked for, so that there may be others. */
  readonly filtered: boolean;
}

export const driftTable = (
  records: readonly DriftRecord[],
  { nameOf, now, filtered }: DriftTableOptions,
): TableView => ({
  kind: 'table',
  columns: [
    { title: 'DRIFT ID', whole: true },
    { title: 'AGENT' },
    { title: 'STATUS', whole: true },
    { title: 'DIFFERENT', right: true },
    { title: 'OF', right: true },
    { title: 'CHECKED' },
    { title: 'TRIGGER' },
    { title: 'AT', wide: true },
    { title: 'COMPARED WITH', wide: true },
  ],
  rows: records.map((record) => [
    record.drift_id,
    nameOf(record.node_id),
    driftStatus(record.status),
    String(record.summary.pending),
    String(record.summary.total),
    formatAge(record.finished_at, now),
    record.trigger,
    formatTime(record.finished_at),
    record.operation_id,
  ]),
  empty: filtered
    ? 'No such drift records. See the newest with: orch drift list'
    : 'No drift records. Check an agent with: orch drift NODE',
});

export interface DriftDetailOptions {
  /** Of the agent. */
  readonly name: string;
  readonly nameOf: NameOfOperator;
  readonly verbose: boolean;
}

export const driftDetails = (record: DriftDetail, { name, nameOf, verbose }: DriftDetailOptions): View =>
  stack(
    fieldsOf([
      ['Drift', record.drift_id],
      ['Agent', name],
      ['Status', driftStatus(record.status)],
      [
        'Checked',
        `${formatTime(record.finished_at)} (${record.trigger}${record.requested_by ? ` by ${nameOf(record.requested_by)}` : ''})`,
      ],
      ['Compared with', record.operation_id],
      ...(record.error === null ? [] : [['Error', styled('bad', record.error.message)] as const]),
    ]),
    linesOf([...planLines(record.resources, { verbose, details: true }), ...countLines('drift', record)]),
  );

function driftStatus(status: DriftRecord['status']): Span {
  if (status === 'in_sync') return styled('good', 'in sync');
  return styled(status === 'cancelled' ? 'dim' : 'bad', status);
}
