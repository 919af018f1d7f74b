/** How maintenance windows are shown. */
import type { MaintenanceWindow } from '../../../contract/maintenance-windows.js';
import { formatDuration, formatTime } from '../../format.js';
import type { NameOfOperator } from '../../operator-names.js';
import { type FieldsView, fields, type Span, styled, type TableView } from '../../view.js';

export const windowTable = (windows: readonly MaintenanceWindow[], nameOf: NameOfOperator): TableView => ({
  kind: 'table',
  columns: [
    { title: 'ID', whole: true },
    { title: 'STATUS' },
    { title: 'FROM' },
    { title: 'UNTIL' },
    { title: 'BY' },
    { title: 'REASON' },
  ],
  rows: windows.map((window) => [
    window.id,
    statusOf(window),
    formatTime(window.starts_at),
    formatTime(window.ends_at),
    nameOf(window.created_by),
    window.reason,
  ]),
  empty: 'No maintenance windows. Begin one with: orch maintenance start --for 1h --reason WHY',
});

export const windowFields = (window: MaintenanceWindow, nameOf: NameOfOperator): FieldsView =>
  fields(
    ['Window', window.id],
    ['Status', statusOf(window)],
    ['From', formatTime(window.starts_at)],
    ['Until', `${formatTime(window.ends_at)} (${formatDuration(window.ends_at - window.starts_at)})`],
    ['Reason', window.reason],
    ['By', `${nameOf(window.created_by)} at ${formatTime(window.created_at)}`],
  );

function statusOf({ status }: MaintenanceWindow): Span {
  switch (status) {
    case 'scheduled':
      return styled('accent', status);
    case 'active':
      return styled('warn', status);
    case 'ended':
      return styled('dim', status);
  }
}
