/** `orch secrets remove`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { count } from '../../format.js';
import { lines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch secrets remove DB_PASSWORD'],
  detail: [
    'What was applied with it stays on the agents. Modules that name it cannot be applied until it is there again.',
  ],
  access: 'operator',
  consent: true,
  args: { name: argument('SECRET', 'name of the secret', 'secret') },
  run: async (context, { name }) => {
    const api = await context.api();
    const request = { params: { name }, signal: context.signal };
    const { modules, agents } = await api.call('getSecretUsage', request);
    const use = `named in ${count(modules.length, 'module')}, held by ${count(agents.length, 'agent')}`;
    await context.prompt.consent(`Delete the secret ${name} (${use})?`);
    await api.call('removeSecret', request);
    return { names: [name], view: lines(`Deleted ${name}.`) };
  },
});
