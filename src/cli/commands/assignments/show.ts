/** `orch assignments show`. */
import { defineCommand } from '../../define-command.js';
import { agentHandle, count } from '../../format.js';
import { operatorNames } from '../../operator-names.js';
import { headed, lines, linesOf, stack } from '../../view.js';
import { assignmentArgument, assignmentFields } from './assignment-view.js';

export const command = defineCommand({
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
