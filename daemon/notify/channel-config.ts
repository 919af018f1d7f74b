/** Configurations as they come in: a masked value that was shown before stands for the stored one. */
import { type ChannelType, MASKED } from '../../src/contract/channels.js';
import type { JsonObject, JsonValue } from '../../src/kernel/json.js';
import { invalidConfig, type ReadConfig } from './channels/channel-kind.js';
import { CHANNEL_KINDS } from './channels/index.js';

/**
 * @param stored null for a new channel
 * @throws Fault `invalid_body`, also for a masked value that stands for nothing
 */
export function readConfig(type: ChannelType, given: object, stored: JsonObject | null): ReadConfig {
  const kind = CHANNEL_KINDS[type];
  const shown = stored === null ? {} : kind.read(stored).masked;
  const entries = Object.entries(given).map(([name, value]): readonly [string, unknown] => {
    if (!kind.secretMembers.includes(name) || typeof value !== 'string') return [name, value];
    return [name, meantBy(name, value, { shown, stored })];
  });
  const read = kind.read(Object.fromEntries(entries));
  const mistakes = kind.newMistakes(read.config);
  if (mistakes.length > 0) throw invalidConfig(mistakes);
  return read;
}

interface Known {
  readonly shown: JsonObject;
  readonly stored: JsonObject | null;
}

function meantBy(name: string, value: string, { shown, stored }: Known): JsonValue | undefined {
  if (stored !== null && value === shown[name]) return stored[name];
  if (!value.includes(MASKED)) return value;
  const message =
    stored === null || shown[name] === undefined
      ? `is masked, and there is no stored value that it could stand for`
      : `is masked, but not as the stored value is shown, which is ${JSON.stringify(shown[name])}`;
  throw invalidConfig([{ path: `/config/${name}`, message }]);
}
