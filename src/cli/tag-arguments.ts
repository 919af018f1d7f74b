/** Parses tags and attributes as operators type them. */
import { Fault } from '../kernel/fault.js';
import { isTagKey, isTagValue } from '../kernel/ids.js';

/** Parses `KEY` or `KEY=VALUE`; the value may contain equals signs. Throws `usage`. */
export function parseTag(text: string): readonly [key: string, value: string] {
  const at = text.indexOf('=');
  if (at === 0 || text === '') {
    throw new Fault('usage', `the tag ${JSON.stringify(text)} has no key`, { hint: 'write KEY or KEY=VALUE' });
  }
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

/** Parses the tags of an agent that the command line describes; the last value of a key wins. Throws `usage` naming the flag. */
export function readTags(given: readonly string[], flag = '--tag'): Readonly<Record<string, string>> {
  return Object.fromEntries(
    given.map((word) => {
      const [key, value] = cutAtEquals(word);
      if (isTagKey(key) && isTagValue(value ?? '')) return [key, value ?? ''];
      throw new Fault('usage', `${flag} takes KEY=VALUE, not "${word}"`);
    }),
  );
}

const ATTRIBUTE = /^[a-z][a-z0-9_]{0,63}$/;

export function readAttributes(given: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    given.map((word) => {
      const [key, value] = cutAtEquals(word);
      if (ATTRIBUTE.test(key) && value !== undefined) return [key, value];
      throw new Fault('usage', `--attribute takes KEY=VALUE, not "${word}"`, { hint: 'such as platform=linux' });
    }),
  );
}

function cutAtEquals(word: string): readonly [string, string | undefined] {
  const at = word.indexOf('=');
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
}
