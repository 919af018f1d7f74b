/** `orch channels add`. */
import { CHANNEL_TYPES } from '../../../contract/channels.js';
import { Fault } from '../../../kernel/fault.js';
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { operatorNames } from '../../operator-names.js';
import { choice, listWords } from '../../option.js';
import { lines, stack } from '../../view.js';
import { askedConfig, configOptions, givenConfig } from './channel-config.js';
import { channelFields } from './channel-view.js';

export const command = defineCommand({
  examples: [
    'orch channels add ops --type webhook --to https://hooks.example.com/orch --secret whsec_…',
    'orch channels add team --type slack',
    'orch channels add phone --type ntfy --topic my-fleet',
    'orch channels add ops --type discord --config discord.json',
  ],
  detail: [
    'Every notification goes to every channel. The address of Discord and Slack is asked for when it is not given;',
    'what stands on the command line can be seen by everybody who lists the processes of this machine, and --config',
    'takes it from a file or from standard input. Try the channel with orch channels test.',
  ],
  access: 'admin',
  args: { name: argument('NAME', 'what to call it') },
  options: { type: choice('TYPE', CHANNEL_TYPES, 'what it is'), ...configOptions },
  run: async (context, { name, type, ...input }) => {
    if (type === undefined) throw new Fault('usage', `--type is missing: ${listWords(CHANNEL_TYPES)}`);
    const config = (await givenConfig(context, type, input)) ?? (await askedConfig(context, type));
    const api = await context.api();
    const body = { channel_type: type, name, config: { ...config } };
    const channel = await api.call('createChannel', { body, signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return {
      body: channel,
      names: [channel.id],
      view: stack(
        lines(`Created the channel ${name}. Try it: orch channels test ${name}`),
        channelFields(channel, { nameOf, now: context.clock.now() }),
      ),
    };
  },
});
