/** `orch channels remove`. */
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';
import { channelArgument, findChannel } from './find-channel.js';

export const command = defineCommand({
  examples: ['orch channels remove ops'],
  detail: ['What was not delivered yet is dropped; the notifications themselves stay.'],
  access: 'admin',
  consent: true,
  args: { channel: channelArgument },
  run: async (context, { channel: given }) => {
    const { signal } = context;
    const api = await context.api();
    const { id, name, channel_type: type } = await findChannel(api, given, signal);
    await context.prompt.consent(`Delete the ${type} channel ${name}?`);
    await api.call('removeChannel', { params: { id }, signal });
    return { names: [id], view: lines(`Deleted the channel ${name}.`) };
  },
});
