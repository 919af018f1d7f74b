/** `orch channels update`. */
import { Fault } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { text } from '../../option.js';
import { lines, stack } from '../../view.js';
import { configOptions, givenConfig } from './channel-config.js';
import { channelFields } from './channel-view.js';
import { channelArgument, findChannel } from './find-channel.js';

export const command = defineCommand({
  examples: [
    'orch channels update ops --name night-shift',
    'orch channels update ops --to https://hooks.example.com/new',
    'orch channels update ops --secret ""',
  ],
  detail: [
    'What is not given stays; an empty value takes away what may be left out. --config replaces everything.',
    'A channel that was disabled because its address was gone is enabled by a new configuration.',
  ],
  access: 'admin',
  args: { channel: channelArgument },
  options: { name: text('NAME', 'what to call it'), ...configOptions },
  run: async (context, { channel: given, name, ...input }) => {
    const { signal } = context;
    const api = await context.api();
    const before = await findChannel(api, given, signal);
    const changes = await givenConfig(context, before.channel_type, input);
    if (name === undefined && changes === null) {
      throw new Fault('usage', 'there is nothing to change', { hint: 'give --name, or what is to be another value' });
    }
    // What is masked in the old configuration stands for the stored value.
    const config = changes === null || input.config !== undefined ? changes : { ...before.config, ...changes };
    const body = { name: name ?? null, config: config === null ? null : { ...config } };
    const channel = await api.call('updateChannel', { params: { id: before.id }, body, signal });
    const nameOf = await operatorNames(context, api);
    return {
      body: channel,
      names: [channel.id],
      view: stack(
        lines(`Changed the channel ${channel.name}.`),
        channelFields(channel, { nameOf, now: context.clock.now() }),
      ),
    };
  },
});
