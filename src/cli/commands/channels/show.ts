/** `orch channels show`. */
import { defineCommand } from '../../define-command.js';
import { readList } from '../../list-pages.js';
import { operatorNames } from '../../operator-names.js';
import { integer } from '../../option.js';
import { stack } from '../../view.js';
import { channelFields, deliveryTable } from './channel-view.js';
import { channelArgument, findChannel } from './find-channel.js';

/** Deliveries without --limit. */
const SHOWN = 10;

export const command = defineCommand({
  examples: ['orch channels show ops', 'orch channels show ops --limit 100'],
  detail: ['What is secret in the configuration is never shown. Below it what was sent last, and what waits.'],
  access: 'viewer',
  args: { channel: channelArgument },
  options: { limit: integer('N', `at most that many deliveries, newest first; ${SHOWN} when left out`, 1) },
  run: async (context, { channel: given, limit }) => {
    const { signal, clock } = context;
    const api = await context.api();
    const channel = await findChannel(api, given, signal);
    const { items: deliveries } = await readList(context, {
      limit,
      read: (page) =>
        api.callFull('listDeliveries', {
          params: { id: channel.id },
          query: { ...page, limit: page.limit ?? SHOWN },
          signal,
        }),
      itemsOf: (body) => body,
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
