/** Positions of results: what of a message is new, and whether something before it is missing. */
import type { RunItem } from '../../src/wire/messages.js';

export type Arrival =
  | { readonly kind: 'new'; readonly items: readonly RunItem[] }
  | { readonly kind: 'duplicate' }
  /** Results between those known and these are missing. */
  | { readonly kind: 'gap' };

/** Results at `from`, `from + 1`, … when the next unknown position is `expected`. */
export function arrival(expected: number, from: number, items: readonly RunItem[]): Arrival {
  if (from > expected) return { kind: 'gap' };
  const fresh = items.slice(expected - from);
  return fresh.length === 0 ? { kind: 'duplicate' } : { kind: 'new', items: fresh };
}
