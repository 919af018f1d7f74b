/** A channel as people name it: its ID, or its name when no other has the same. */
import type { ApiClient } from '../../../client/api-client.js';
import type { Channel } from '../../../contract/channels.js';
import { Fault } from '../../../kernel/fault.js';
import { argument } from '../../argument.js';

export const channelArgument = argument('CHANNEL', 'name or ID of the channel', 'channel');

/** Throws `channel_not_found`, `usage` for a name that several have. */
export async function findChannel(api: ApiClient, given: string, signal: AbortSignal): Promise<Channel> {
  const all = await api.call('listChannels', { signal });
  const byId = all.find(({ id }) => id === given);
  if (byId !== undefined) return byId;
  const named = all.filter(({ name }) => name === given);
  const [only] = named;
  if (only === undefined) {
    throw new Fault('channel_not_found', `there is no channel "${given}"`, {
      hint: 'see what there is: orch channels list',
    });
  }
  if (named.length === 1) return only;
  throw new Fault('usage', `${named.length} channels are called "${given}"`, {
    hint: `name one by its ID: ${named.map(({ id }) => id).join(', ')}`,
  });
}
