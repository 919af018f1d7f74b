/** `orch operator remove`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';
import { findOperator } from './find-operator.js';

export const command = defineCommand({
  examples: ['orch operator remove ada'],
  detail: ['Every session of the operator ends at once. The last active admin cannot be removed.'],
  access: 'admin',
  consent: true,
  args: { operator: argument('OPERATOR', 'username, operator ID, or a unique beginning of one', 'operator') },
  run: async (context, input) => {
    const api = await context.api();
    const { operator_id, username, role } = await findOperator(api, input.operator, context.signal);
    await context.prompt.consent(`Remove the operator ${username} (${role}, ${operator_id})?`);
    await api.call('removeOperator', { params: { operator_id }, signal: context.signal });
    return { names: [operator_id], view: lines(`Removed ${username}.`) };
  },
});
