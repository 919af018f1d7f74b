/** How assignments are shown, and the options that describe one. */
import type { Assignment } from '../../../contract/assignments.js';
import { argument } from '../../argument.js';
import { formatTime, orNone } from '../../format.js';
import type { NameOfOperator } from '../../operator-names.js';
import { list, text } from '../../option.js';
import { type FieldsView, fields, type TableView } from '../../view.js';

export const assignmentArgument = argument('ASSIGNMENT', 'name of the assignment', 'assignment');

export const assignmentOptions = {
  module: list('MODULE', 'a module that is uploaded already', { short: 'm', completes: 'module' }),
  selector: text('SELECTOR', 'the agents that it is for (see: orch help selectors)', { short: 'l' }),
  description: text('TEXT', 'what it is for'),
} as const;

export const assignmentTable = (assignments: readonly Assignment[], nameOf: NameOfOperator): TableView => ({
  kind: 'table',
  columns: [
    { title: 'ASSIGNMENT', whole: true },
    { title: 'SELECTOR' },
    { title: 'MODULES' },
    { title: 'DESCRIPTION' },
    { title: 'CREATED', wide: true },
    { title: 'BY', wide: true },
  ],
  rows: assignments.map((assignment) => [
    assignment.name,
    assignment.selector,
    assignment.modules.join(' '),
    orNone(assignment.description),
    formatTime(assignment.created_at),
    nameOf(assignment.created_by),
  ]),
  empty: 'No assignments. Make one with: orch assignments create NAME -m MODULE --selector SELECTOR',
});

export const assignmentFields = (assignment: Assignment, nameOf: NameOfOperator): FieldsView =>
  fields(
    ['Assignment', assignment.name],
    ['Selector', assignment.selector],
    ['Modules', assignment.modules.join(' ')],
    ['Description', orNone(assignment.description)],
    ['Created', `${formatTime(assignment.created_at)} by ${nameOf(assignment.created_by)}`],
  );
