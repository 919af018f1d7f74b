/** `orch channels list`. */
import { defineCommand } from '../../define-command.js';
import { channelTable } from './channel-view.js';

export const command = defineCommand({
  examples: ['orch channels list'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    const channels = await api.call('listChannels', { signal: context.signal });
    const view = channelTable(channels, context.clock.now());
    return { body: channels, names: channels.map(({ id }) => id), view };
  },
});
