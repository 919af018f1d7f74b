/** The values of secrets in a body, for a net under the masking (`src/kernel/scrub.ts`). */
import type { Scrubbed } from '../kernel/scrub.js';
import { maskOf, type Span } from '../kernel/tainted.js';
import { escapePointer } from '../kernel/validator.js';
import type { DesiredResource } from './desired.js';

/** Every secret part of every text in the body, with its mask. */
export function secretValues({ body, taint = {} }: Pick<DesiredResource, 'body' | 'taint'>): readonly Scrubbed[] {
  const spans = new Map(Object.entries(taint));
  return spans.size === 0 ? [] : valuesIn(body, '', spans);
}

function valuesIn(value: unknown, path: string, taint: ReadonlyMap<string, readonly Span[]>): readonly Scrubbed[] {
  if (typeof value === 'string') {
    return (taint.get(path) ?? []).map((span) => ({ value: value.slice(span.start, span.end), shown: maskOf(span) }));
  }
  if (typeof value !== 'object' || value === null) return [];
  // The members of a list are named by their positions.
  return Object.entries(value).flatMap(([key, member]) => valuesIn(member, `${path}/${escapePointer(key)}`, taint));
}
