/** `orch operator whoami`. */
import { defineCommand } from '../../define-command.js';
import { formatTime } from '../../format.js';
import { operatorNames } from '../../operator-names.js';
import { fields, stack } from '../../view.js';
import { operatorFields } from './operator-view.js';

export const command = defineCommand({
  examples: ['orch operator whoami'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    const session = await api.call('getSession', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return {
      body: session,
      names: [session.operator.username],
      view: stack(
        operatorFields(session.operator, nameOf),
        fields(['Orchestrator', api.url.href.replace(/\/$/, '')], ['Session until', formatTime(session.expires_at)]),
      ),
    };
  },
});
