/** `orch ops show`. */
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { operationArgument } from './operation-argument.js';
import { operationDetails } from './operation-view.js';

export const command = defineCommand({
  examples: ['orch ops show 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  access: 'viewer',
  args: { id: operationArgument },
  run: async (context, { id }) => {
    const api = await context.api();
    const operation = await api.call('getOperation', { params: { operation_id: id }, signal: context.signal });
    return {
      body: operation,
      names: [operation.operation_id],
      view: operationDetails(operation, await operatorNames(context, api), context.globals.verbose),
    };
  },
});
