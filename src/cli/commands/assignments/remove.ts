/** `orch assignments remove`. */
import { defineCommand } from '../../define-command.js';
import { count } from '../../format.js';
import { lines } from '../../view.js';
import { assignmentArgument } from './assignment-view.js';

export const command = defineCommand({
  examples: ['orch assignments remove web'],
  detail: ['What it put on agents stays until an apply without it removes it, which the removal guard watches.'],
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
