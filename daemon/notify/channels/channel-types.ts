/** The complete list of channel types. */
import { CHANNEL_TYPES, type ChannelType } from '../../../src/contract/channels.js';
import type { ChannelKind } from './channel-kind.js';
import { discord } from './discord.js';
import { ntfy } from './ntfy.js';
import { slack } from './slack.js';
import { webhook } from './webhook.js';

export const CHANNEL_KINDS: Readonly<Record<ChannelType, ChannelKind>> = { webhook, discord, slack, ntfy };

/** Returns the channel type of a stored row. Throws for an unknown type. */
export function typeOf({ channel_type: name }: { readonly channel_type: string }): ChannelType {
  const type = CHANNEL_TYPES.find((candidate) => candidate === name);
  if (type === undefined) throw new Error(`the store holds a channel of the unknown type ${name}`);
  return type;
}
