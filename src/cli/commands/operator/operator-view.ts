/** How operators are shown. */
import type { Operator } from '../../../contract/operators.js';
import { groupsOfFour } from '../../../identity/key-id.js';
import { formatTime, orNone } from '../../format.js';
import type { NameOfOperator } from '../../operator-names.js';
import { type FieldsView, fieldsOf, type TableView } from '../../view.js';

export const operatorTable = (operators: readonly Operator[], nameOf: NameOfOperator): TableView => ({
  kind: 'table',
  columns: [
    { title: 'USERNAME', whole: true },
    { title: 'ROLE' },
    { title: 'OPERATOR ID', whole: true },
    { title: 'ADDED' },
    { title: 'REMOVED' },
    { title: 'ADDED BY', wide: true },
    { title: 'PUBLIC KEY', wide: true },
  ],
  rows: operators.map((operator) => [
    operator.username,
    operator.role,
    operator.operator_id,
    formatTime(operator.added_at),
    orNone(formatTime(operator.removed_at)),
    nameOf(operator.added_by),
    operator.public_key,
  ]),
  empty: 'No operators.',
});

export function operatorFields(operator: Operator, nameOf: NameOfOperator): FieldsView {
  const removed: readonly (readonly [string, string])[] =
    operator.removed_at === null
      ? []
      : [['Removed', `${formatTime(operator.removed_at)} by ${nameOf(operator.removed_by ?? 'unknown')}`]];
  return fieldsOf([
    ['Username', operator.username],
    ['Role', operator.role],
    ['Operator ID', groupsOfFour(operator.operator_id)],
    ['Public key', operator.public_key],
    [
      'Added',
      `${formatTime(operator.added_at)} by ${nameOf(operator.added_by)}${operator.bootstrap ? ' (the first one)' : ''}`,
    ],
    ...removed,
  ]);
}
