/** The commands of `orch assignments`. */
import type { Assignment } from '../../contract/assignments.js';
import { Fault } from '../../kernel/fault.js';
import { argument, defineCommand, list, requiredText, text } from '../define-command.js';
import { agentHandle, count, formatTime, textOrNone } from '../format.js';
import { type FieldsView, fields, headed, lines, linesOf, stack, type TableView } from '../outcome.js';
import { type NameOfOperator, operatorNames } from '../record-names.js';

export const assignmentArgument = argument('ASSIGNMENT', 'name of the assignment', 'assignment');

export const assignmentOptions = {
  module: list('MODULE', 'an uploaded module', { short: 'm', completes: 'module' }),
  selector: text('SELECTOR', 'agents that get the modules (see: orch help selectors)', { short: 'l' }),
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
    textOrNone(assignment.description),
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
    ['Description', textOrNone(assignment.description)],
    ['Created', `${formatTime(assignment.created_at)} by ${nameOf(assignment.created_by)}`],
  );

/** `orch assignments list`. */
export const listAssignments = defineCommand({
  examples: ['orch assignments', 'orch assignments list -o wide'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    const assignments = await api.call('listAssignments', { signal: context.signal });
    return {
      body: assignments,
      names: assignments.map(({ name }) => name),
      view: assignmentTable(assignments, await operatorNames(context, api)),
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
    'Applies nothing yet: later applies to these agents include the modules. Preview the effect with orch plan.',
  ],
  access: 'operator',
  args: { name: argument('ASSIGNMENT', 'name for the assignment: letters, digits, ".", "_", "-"') },
  options: {
    ...assignmentOptions,
    selector: requiredText('SELECTOR', assignmentOptions.selector.summary, { short: 'l' }),
  },
  run: async (context, { name, module, selector, description }) => {
    if (module.length === 0) {
      throw new Fault('usage', 'an assignment needs a module', {
        hint: `add one: orch assignments create ${name} -m MODULE`,
      });
    }
    const api = await context.api();
    const body = { name, modules: [...module], selector, description: description ?? null };
    const assignment = await api.call('createAssignment', { body, signal: context.signal });
    const next = `Preview the changes with: orch plan --assignment ${name}`;
    return { body: assignment, names: [name], view: lines(`Created assignment ${name}. ${next}`) };
  },
});

/** `orch assignments edit`. */
export const editAssignment = defineCommand({
  examples: ['orch assignments edit web --selector "role=web,env=prod"', 'orch assignments edit web -m nginx -m site'],
  detail: [
    'Members that are not given stay. The modules of -m replace the old list; --description "" removes the description.',
  ],
  access: 'operator',
  args: { name: assignmentArgument },
  options: assignmentOptions,
  run: async (context, { name, module, selector, description }) => {
    if (module.length === 0 && selector === undefined && description === undefined) {
      throw new Fault('usage', 'nothing to change: give -m, --selector or --description');
    }
    const api = await context.api();
    const modules = module.length === 0 ? null : [...module];
    const body = { modules, selector: selector ?? null, description: description ?? null };
    const assignment = await api.call('updateAssignment', { params: { name }, body, signal: context.signal });
    const next = `Preview the changes with: orch plan --assignment ${name}`;
    return { body: assignment, names: [name], view: lines(`Changed assignment ${name}. ${next}`) };
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
