/** `orch assignments create`. */
import { Fault } from '../../../kernel/fault.js';
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { requiredText } from '../../option.js';
import { lines } from '../../view.js';
import { assignmentOptions } from './assignment-view.js';

export const command = defineCommand({
  examples: [
    'orch assignments create web -m nginx -m site --selector role=web',
    'orch assignments create base -m motd -l "*" --description "what every machine has"',
  ],
  detail: [
    'Nothing is applied yet: every later apply of those agents includes the modules. See what it would do with orch plan.',
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
    const next = `See what it would change with: orch plan --assignment ${name}`;
    return { body: assignment, names: [name], view: lines(`Created assignment ${name}. ${next}`) };
  },
});
