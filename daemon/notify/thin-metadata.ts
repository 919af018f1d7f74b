/** What of an event's metadata leaves the house: IDs and counts. */
import type { JsonObject, JsonValue } from '../../src/kernel/json.js';

/** ULIDs and hex IDs; nothing that people have written fits by chance. */
const ID = /^([0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9a-f]{16,64}|system)$/;
const MOST_MEMBERS = 32;

export function thinMetadata(metadata: JsonObject): JsonObject {
  const thin: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(metadata).slice(0, MOST_MEMBERS)) {
    if (isThin(value)) thin[name] = value;
    else if (isCounts(value)) thin[name] = value;
  }
  return thin;
}

const isThin = (value: JsonValue | undefined): value is number | boolean | string =>
  typeof value === 'number' || typeof value === 'boolean' || (typeof value === 'string' && ID.test(value));

const isCounts = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((count) => typeof count === 'number') &&
  Object.keys(value).length <= MOST_MEMBERS;
