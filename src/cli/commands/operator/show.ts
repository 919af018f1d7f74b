/** `orch operator show`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { findOperator } from './find-operator.js';
import { operatorFields } from './operator-view.js';

export const command = defineCommand({
  examples: ['orch operator show ada'],
  access: 'viewer',
  args: { operator: argument('OPERATOR', 'username, operator ID, or a unique beginning of one', 'operator') },
  run: async (context, input) => {
    const api = await context.api();
    const operator = await findOperator(api, input.operator, context.signal);
    const nameOf = await operatorNames(context, api);
    return { body: operator, names: [operator.operator_id], view: operatorFields(operator, nameOf) };
  },
});
