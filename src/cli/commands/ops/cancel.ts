/** `orch ops cancel`. */
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';
import { operationArgument } from './operation-argument.js';

export const command = defineCommand({
  examples: ['orch ops cancel 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: [
    'A script that runs is stopped. Any other resource that is being worked on is finished, and none after it is begun.',
  ],
  access: 'operator',
  args: { id: operationArgument },
  run: async (context, { id }) => {
    const api = await context.api();
    const operation = await api.call('cancelOperation', { params: { operation_id: id }, signal: context.signal });
    return {
      body: operation,
      names: [operation.operation_id],
      view: lines(`Operation ${operation.operation_id} stops at the next resource. Watch it: orch ops watch ${id}`),
    };
  },
});
