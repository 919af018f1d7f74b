/** `orch secrets show`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { stack } from '../../view.js';
import { secretFields, usageFields } from './secret-view.js';

export const command = defineCommand({
  examples: ['orch secrets show DB_PASSWORD'],
  detail: ['A value is never shown: who needs it reads it where it was applied, and who has lost it sets another one.'],
  access: 'viewer',
  args: { name: argument('SECRET', 'name of the secret', 'secret') },
  run: async (context, { name }) => {
    const api = await context.api();
    const request = { params: { name }, signal: context.signal };
    const secret = await api.call('getSecret', request);
    const usage = await api.call('getSecretUsage', request);
    const nameOf = await operatorNames(context, api);
    const { modules, agents } = usage;
    return {
      body: { ...secret, usage: { modules, agents } },
      names: [secret.name],
      view: stack(secretFields(secret, nameOf), usageFields(usage)),
    };
  },
});
