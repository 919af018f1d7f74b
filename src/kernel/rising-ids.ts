/** IDs that increase whatever the clock says, so that their order is the order of events. */
import { decodeTime, encodeTime } from 'ulid';

/** Number of characters of a ULID that hold its time. */
const TIME_LENGTH = 10;

/**
 * Returns `id` when it is above `last`, else a variant in the following millisecond. The random part of `last` is
 * never reused.
 */
export function idAbove(last: string, id: string): string {
  if (id > last) return id;
  return encodeTime(decodeTime(last) + 1) + id.slice(TIME_LENGTH);
}
