/** `orch channels test`. */
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';
import { channelArgument, findChannel } from './find-channel.js';

export const command = defineCommand({
  examples: ['orch channels test ops'],
  detail: [
    'Sends a test notification at once and waits for the answer. A success enables a channel that was disabled.',
  ],
  access: 'admin',
  args: { channel: channelArgument },
  run: async (context, { channel: given }) => {
    const { signal } = context;
    const api = await context.api();
    const { id, name } = await findChannel(api, given, signal);
    const tested = await api.call('testChannel', { params: { id }, signal });
    const text = `Delivered to ${name}: the answer was ${tested.status_code}, after ${tested.duration_ms} ms.`;
    return { body: tested, names: [id], view: lines(text) };
  },
});
