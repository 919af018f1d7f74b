/** Pauses of channels: a receiver that is asked too often says how long nothing more may be sent to it. */
import type { ChannelKind } from './channels/channel-kind.js';
import type { Reply } from './response-reader.js';

const SECOND = 1_000;
/** Least pause in milliseconds. Receivers also ask for 0 seconds, which would be a loop of requests. */
const LEAST = SECOND;
/** Greatest pause in milliseconds. A receiver that asks for more is tried again after this time. */
const GREATEST = 300 * SECOND;
/** Pause in milliseconds after a 429 that does not say how long. */
const UNKNOWN = 60 * SECOND;
const TOO_MANY_REQUESTS = 429;

/**
 * Returns the milliseconds for which the answer asks the channel to pause; null for an answer that is not such a request.
 * @param now Unix milliseconds
 */
export function pauseOf(
  { status, headers, body }: Reply,
  kind: Pick<ChannelKind, 'pauseOf'>,
  now: number,
): number | null {
  const isServerError = status >= 500 && status < 600;
  if (status !== TOO_MANY_REQUESTS && !isServerError) return null;
  const asked = kind.pauseOf({ status, headers, body }) ?? readRetryAfter(headers.get('retry-after'), now);
  if (asked === null) return status === TOO_MANY_REQUESTS ? UNKNOWN : null;
  return Math.round(Math.min(Math.max(asked, LEAST), GREATEST));
}

/** Parses `Retry-After` into milliseconds from `now`; null when it is absent or invalid. */
function readRetryAfter(text: string | undefined, now: number): number | null {
  if (text === undefined) return null;
  const ms = /^\d{1,9}(\.\d+)?$/.test(text) ? Number(text) * SECOND : Date.parse(text) - now;
  return Number.isNaN(ms) ? null : ms;
}

/**
 * Returns the milliseconds that a pause still lasts, 0 for none. A pause that would last longer than any can was stored
 * by a clock that was ahead, and does not count.
 */
export function pauseLeft({ paused_until: until }: { readonly paused_until: number | null }, now: number): number {
  const left = (until ?? 0) - now;
  return left > 0 && left <= GREATEST ? left : 0;
}
