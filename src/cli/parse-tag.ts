/** Tags as people give them. */
import { Fault } from '../kernel/fault.js';

/** `KEY` or `KEY=VALUE`; a value may hold further equals signs. */
export function parseTag(text: string): readonly [key: string, value: string] {
  const at = text.indexOf('=');
  if (at === 0 || text === '') {
    throw new Fault('usage', `the tag ${JSON.stringify(text)} has no key`, { hint: 'write KEY or KEY=VALUE' });
  }
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
