/** Entity tags, by which a write names the state that it was made for (RFC 9110, sections 8.8.3 and 13.1.1). */
import { createHash } from 'node:crypto';
import { Fault } from '../../src/kernel/fault.js';
import { canonicalJson, type JsonObject } from '../../src/kernel/json.js';
import type { RequestContext } from './domain-event.js';

/** Returns the tag of what a write can replace, and of nothing else that an answer shows. Equal contents have equal tags. */
export const entityTag = (content: JsonObject): string =>
  `"${createHash('sha256').update(canonicalJson(content)).digest('hex').slice(0, 32)}"`;

/** An answer with the tag of what it shows. */
export interface Tagged<T> {
  readonly body: T;
  readonly headers: { readonly etag: string };
}

/** Returns a body with the tag of the content that it shows. */
export const tagged = <T>(body: T, content: JsonObject): Tagged<T> => ({
  body,
  headers: { etag: entityTag(content) },
});

/**
 * Throws `precondition_failed` when the request names other states than this one. Call it in the transaction that writes.
 * @param thing for the message, such as `assignment web`
 */
export function requireMatch({ ifMatch }: RequestContext, thing: string, content: JsonObject): void {
  if (ifMatch === undefined || ifMatch === null || ifMatch.includes('*')) return;
  const etag = entityTag(content);
  if (ifMatch.includes(etag)) return;
  throw new Fault('precondition_failed', `${thing} has been changed since it was read, and this would undo that`, {
    hint: 'read it again, and make the change on what is there now',
    data: { etag },
  });
}
