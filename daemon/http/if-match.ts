/** The header `If-Match`: a write that is done only on the state that it was made for (RFC 9110, section 13.1.1). */
import { type RouteSpec, takesIfMatch } from '../../src/contract/route.js';
import { Fault } from '../../src/kernel/fault.js';

const TAG = '(?:W/)?"[\\x21\\x23-\\x7e\\x80-\\xff]*"';
const TAGS = new RegExp(`^${TAG}(?:[ \\t]*,[ \\t]*${TAG})*$`);

/**
 * Returns the tags of a write's If-Match, or `*`; null without the header and for reads. A weak tag stays as it is, so that it
 * equals no tag of a state. Throws `bad_request` for other text, and where nothing has a tag: a caller that asks for the check
 * has to get it.
 */
export function ifMatchOf(header: string | undefined, route: RouteSpec): readonly string[] | null {
  const { method, path } = route;
  if (header === undefined || method === 'GET') return null;
  if (!takesIfMatch(route)) {
    throw new Fault('bad_request', `If-Match cannot be checked: ${method} ${path} replaces nothing that has an ETag`, {
      hint: 'leave it out',
    });
  }
  const text = header.trim();
  if (text === '*') return ['*'];
  if (text.length <= 4_096 && TAGS.test(text)) return text.match(new RegExp(TAG, 'g')) ?? [];
  throw new Fault('bad_request', 'If-Match is neither * nor a list of tags', {
    hint: 'send the ETag as it was received, with its quotes',
  });
}
