/** `orch operator list`. */
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { flag } from '../../option.js';
import { operatorTable } from './operator-view.js';

export const command = defineCommand({
  examples: ['orch operator list'],
  access: 'viewer',
  options: { includeRemoved: flag('show removed ones too') },
  run: async (context, { includeRemoved }) => {
    const api = await context.api();
    const operators = await api.call('listOperators', {
      query: { include_removed: includeRemoved },
      signal: context.signal,
    });
    return {
      body: operators,
      names: operators.map(({ username }) => username),
      view: operatorTable(operators, await operatorNames(context, api)),
    };
  },
});
