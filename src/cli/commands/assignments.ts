/** The commands of `orch assignments`. */
import type { Assignment, ReviewReason } from '../../contract/assignments.js';
import { ASSIGNMENT_MODES, type AssignmentMode } from '../../kernel/assignment-modes.js';
import { Fault } from '../../kernel/fault.js';
import { argument, defineCommand } from '../define-command.js';
import { agentHandle, count, formatTime, type TimeCell, textOrNone, timeCells } from '../format.js';
import { choice, list, requiredText, text } from '../options.js';
import {
  type Column,
  type FieldsView,
  fields,
  headed,
  lines,
  linesOf,
  type Span,
  stack,
  styled,
  type TableView,
} from '../outcome.js';
import { type NameOfOperator, operatorNames } from '../record-names.js';
import { assignmentDifferences } from '../sync/sync-plan.js';

export const assignmentArgument = argument('ASSIGNMENT', 'name of the assignment', 'assignment');

export const assignmentOptions = {
  module: list('MODULE', 'an uploaded module', { short: 'm', completes: 'module' }),
  selector: text('SELECTOR', 'agents that get the modules (orch help selectors)', { short: 'l' }),
  description: text('TEXT', 'what it is for'),
  mode: choice('MODE', ASSIGNMENT_MODES, 'when the orchestrator applies by itself'),
} as const;

export const assignmentTable = (
  assignments: readonly Assignment[],
  nameOf: NameOfOperator,
  timeOf: TimeCell,
): TableView => ({
  kind: 'table',
  columns: ASSIGNMENT_COLUMNS,
  rows: assignments.map((assignment) => [
    assignment.name,
    assignment.selector,
    assignment.modules.join(' '),
    modeOf(assignment),
    textOrNone(assignment.description),
    timeOf(assignment.created_at),
    nameOf(assignment.created_by),
  ]),
  empty: 'No assignments. Make one with: orch assignments create NAME -m MODULE --selector SELECTOR',
});

export const assignmentFields = (assignment: Assignment, nameOf: NameOfOperator): FieldsView =>
  fields(
    ['Assignment', assignment.name],
    ['Selector', assignment.selector],
    ...(assignment.scope === undefined ? [] : [['Within', assignment.scope.join('; ')] as const]),
    ...(assignment.review === undefined ? [] : [['Review', REVIEW[assignment.review]] as const]),
    ['Modules', assignment.modules.join(' ')],
    ['Mode', modeOf(assignment)],
    ...(assignment.stopped_reason === null
      ? []
      : [['Stopped', `${assignment.stopped_reason}; go on: orch assignments resume ${assignment.name}`] as const]),
    ...(assignment.values == null ? [] : [['Values', JSON.stringify(assignment.values)] as const]),
    ['Description', textOrNone(assignment.description)],
    ['Created', `${formatTime(assignment.created_at)} by ${nameOf(assignment.created_by)}`],
  );

function modeOf({ mode, stopped_reason, review }: Assignment): Span {
  const marks = [...(stopped_reason === null ? [] : ['stopped']), ...(review === undefined ? [] : ['review'])];
  return marks.length === 0 ? mode : styled('warn', `${mode} (${marks.join(', ')})`);
}

const REVIEW: Readonly<Record<ReviewReason, string>> = {
  maker_left: 'its maker was removed or has expired; it goes on as it is',
  maker_lost_rights: 'its maker may no longer apply to all of these machines; it goes on as it is',
};

const ASSIGNMENT_COLUMNS: readonly Column[] = [
  { title: 'ASSIGNMENT', whole: true },
  { title: 'SELECTOR' },
  { title: 'MODULES' },
  { title: 'MODE' },
  { title: 'DESCRIPTION', spare: 1 },
  { title: 'CREATED', wide: true },
  { title: 'BY', wide: true },
];

/** `orch assignments list`. */
export const listAssignments = defineCommand({
  examples: ['orch assignments', 'orch assignments list -o wide'],
  access: 'viewer',
  columns: ASSIGNMENT_COLUMNS,
  run: async (context) => {
    const api = await context.api();
    const assignments = await api.call('listAssignments', { signal: context.signal });
    return {
      body: assignments,
      names: assignments.map(({ name }) => name),
      view: assignmentTable(
        assignments,
        await operatorNames(context, api),
        timeCells(context.clock.now(), context.globals),
      ),
    };
  },
});

/** `orch assignments show`. */
export const showAssignment = defineCommand({
  examples: ['orch assignments show web'],
  access: 'viewer',
  args: { name: assignmentArgument },
  run: async (context, { name }) => {
    const api = await context.api();
    const assignment = await api.call('getAssignment', { params: { name }, signal: context.signal });
    const nameOf = await operatorNames(context, api);
    const { agents } = assignment;
    const matched =
      agents.length === 0
        ? lines('It matches no approved agent now.')
        : headed(`Matches ${count(agents.length, 'agent')} now`, linesOf(agents.map((one) => `  ${agentHandle(one)}`)));
    return { body: assignment, names: [assignment.name], view: stack(assignmentFields(assignment, nameOf), matched) };
  },
});

/** `orch assignments create`. */
export const createAssignment = defineCommand({
  examples: [
    'orch assignments create web -m nginx -m site --selector role=web',
    'orch assignments create base -m motd -l "*" --description "what every machine has"',
  ],
  detail: [
    'Later applies to these agents include the modules.',
    'With --mode manual, the default, nothing is applied by itself. With on-connect, an agent that connects gets what',
    'it is missing. With enforce, connected agents also get changed modules at once, and drift is repaired.',
  ],
  access: 'operator',
  args: { name: argument('ASSIGNMENT', 'name for the assignment: letters, digits, ".", "_", "-"') },
  options: {
    ...assignmentOptions,
    selector: requiredText('SELECTOR', assignmentOptions.selector.summary, { short: 'l' }),
  },
  run: async (context, { name, module, selector, description, mode }) => {
    if (module.length === 0) {
      throw new Fault('usage', 'an assignment needs a module', {
        hint: `add one: orch assignments create ${name} -m MODULE`,
      });
    }
    const api = await context.api();
    const body = { name, modules: [...module], selector, description: description ?? null, ...modeBody(mode) };
    const assignment = await api.call('createAssignment', { body, signal: context.signal });
    const next = `Preview the changes with: orch plan --assignment ${name}`;
    return { body: assignment, names: [name], view: lines(`Created assignment ${name}. ${next}`) };
  },
});

/** Returns the member of a request about the mode; older orchestrators know none. */
const modeBody = (mode: AssignmentMode | undefined): { readonly mode?: AssignmentMode } =>
  mode === undefined ? {} : { mode };

/** `orch assignments edit`. */
export const editAssignment = defineCommand({
  examples: [
    'orch assignments edit web --selector "role=web,env=prod"',
    'orch assignments edit web -m nginx -m site',
    'orch assignments edit web --mode enforce',
  ],
  detail: [
    'Members that are not given stay. The modules of -m replace the old ones; --description "" removes the',
    'description.',
  ],
  access: 'operator',
  args: { name: assignmentArgument },
  options: assignmentOptions,
  run: async (context, { name, module, selector, description, mode }) => {
    if (module.length === 0 && selector === undefined && description === undefined && mode === undefined) {
      throw new Fault('usage', 'nothing to change: give -m, --selector, --description or --mode');
    }
    const api = await context.api();
    const modules = module.length === 0 ? null : [...module];
    const body = { modules, selector: selector ?? null, description: description ?? null, ...modeBody(mode) };
    const request = { params: { name }, signal: context.signal };
    const { body: before, headers } = await api.callWithHeaders('getAssignment', request);
    const assignment = await api.call('updateAssignment', { ...request, body, ifMatch: headers.etag });
    const next = `Preview the changes with: orch plan --assignment ${name}`;
    return {
      body: assignment,
      names: [name],
      view: lines(...changedLines(before, assignment), `Changed assignment ${name}. ${next}`),
    };
  },
});

/** Returns what a change has replaced, one line for each field. */
const changedLines = (before: Assignment, after: Assignment): readonly string[] =>
  assignmentDifferences(after, before).map((one) => `${one.field}: ${one.before || '-'} -> ${one.after || '-'}`);

/** `orch assignments resume`. */
export const resumeAssignment = defineCommand({
  examples: ['orch assignments resume web'],
  detail: [
    'Automatic applies stop for an agent whose drift comes back after each repair, or whose apply the removal guard',
    'refuses or an operator cancels, and for the whole assignment after too many agents failed.',
  ],
  access: 'operator',
  args: { name: assignmentArgument },
  run: async (context, { name }) => {
    const api = await context.api();
    const assignment = await api.call('resumeAssignment', { params: { name }, signal: context.signal });
    return { body: assignment, names: [name], view: lines(`The automatic applies of assignment ${name} go on.`) };
  },
});

/** `orch assignments remove`. */
export const removeAssignment = defineCommand({
  examples: ['orch assignments remove web'],
  detail: ['Applied resources stay until an apply without the assignment removes them, under the removal guard.'],
  access: 'operator',
  consent: true,
  args: { name: assignmentArgument },
  run: async (context, { name }) => {
    const api = await context.api();
    const { agents } = await api.call('getAssignment', { params: { name }, signal: context.signal });
    await context.prompt.consent(`Delete the assignment ${name}, which matches ${count(agents.length, 'agent')} now?`);
    await api.call('removeAssignment', { params: { name }, signal: context.signal });
    return { names: [name], view: lines(`Deleted assignment ${name}.`) };
  },
});
