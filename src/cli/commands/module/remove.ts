/** `orch module remove`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch module remove nginx'],
  detail: ['Deletes every revision. What the module put on agents stays until an apply without it removes it.'],
  access: 'operator',
  consent: true,
  args: { name: argument('MODULE', 'name of the module', 'module') },
  run: async (context, { name }) => {
    const api = await context.api();
    await api.call('getModule', { params: { name }, signal: context.signal });
    await context.prompt.consent(`Delete the module ${name} with all its revisions?`);
    await api.call('removeModule', { params: { name }, signal: context.signal });
    return { names: [name], view: lines(`Deleted ${name}.`) };
  },
});
