/** `orch secrets list`. */
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { secretTable } from './secret-view.js';

export const command = defineCommand({
  examples: ['orch secrets list'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    const secrets = await api.call('listSecrets', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return { body: secrets, names: secrets.map(({ name }) => name), view: secretTable(secrets, nameOf) };
  },
});
