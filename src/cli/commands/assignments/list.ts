/** `orch assignments list`. */
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { assignmentTable } from './assignment-view.js';

export const command = defineCommand({
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
