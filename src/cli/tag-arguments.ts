/** Tags as people give them. */
import { Fault } from '../kernel/fault.js';
import { isTagKey, isTagValue } from '../kernel/ids.js';

/** `KEY` or `KEY=VALUE`; a value may hold further equals signs. */
export function parseTag(text: string): readonly [key: string, value: string] {
  const at = text.indexOf('=');
  if (at === 0 || text === '') {
    throw new Fault('usage', `the tag ${JSON.stringify(text)} has no key`, { hint: 'write KEY or KEY=VALUE' });
  }
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

/** Reads `KEY=VALUE` and, for tags, `KEY` alone; a later one wins. Throws `usage` naming the flag. */
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
