/** `orch channels show`. */
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { integer } from '../../option.js';
import { stack } from '../../view.js';
import { channelFields, deliveryTable } from './channel-view.js';
import { channelArgument, findChannel } from './find-channel.js';

export const command = defineCommand({
  examples: ['orch channels show ops', 'orch channels show ops --limit 100'],
  detail: ['What is secret in the configuration is never shown. Below it what was sent last, and what waits.'],
  access: 'viewer',
  args: { channel: channelArgument },
  options: { limit: integer('N', 'at most that many deliveries, newest first; 10 when left out', 1) },
  run: async (context, { channel: given, limit }) => {
    const { signal, clock } = context;
    const api = await context.api();
    const channel = await findChannel(api, given, signal);
    const deliveries = await api.call('listDeliveries', {
      params: { id: channel.id },
      query: { limit: limit ?? 10 },
      signal,
    });
    const nameOf = await operatorNames(context, api);
    const now = clock.now();
    return {
      body: { ...channel, deliveries },
      names: [channel.id],
      view: stack(channelFields(channel, { nameOf, now }), deliveryTable(deliveries, now)),
    };
  },
});
