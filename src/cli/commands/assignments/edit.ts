/** `orch assignments edit`. */
import { Fault } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';
import { assignmentArgument, assignmentOptions } from './assignment-view.js';

export const command = defineCommand({
  examples: ['orch assignments edit web --selector "role=web,env=prod"', 'orch assignments edit web -m nginx -m site'],
  detail: [
    'What is not given stays. The modules of -m replace all that it had; --description "" takes the description away.',
  ],
  access: 'operator',
  args: { name: assignmentArgument },
  options: assignmentOptions,
  run: async (context, { name, module, selector, description }) => {
    if (module.length === 0 && selector === undefined && description === undefined) {
      throw new Fault('usage', 'there is nothing to change: give -m, --selector or --description');
    }
    const api = await context.api();
    const modules = module.length === 0 ? null : [...module];
    const body = { modules, selector: selector ?? null, description: description ?? null };
    const assignment = await api.call('updateAssignment', { params: { name }, body, signal: context.signal });
    const next = `See what it would change with: orch plan --assignment ${name}`;
    return { body: assignment, names: [name], view: lines(`Changed assignment ${name}. ${next}`) };
  },
});
