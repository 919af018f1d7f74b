/** Bodies with secrets: their masked form for storage and display, and the secret values for scrubbing. */

import type { Scrubbed } from '../kernel/tainted.js';
import { mask, maskOf, type Span } from '../kernel/tainted.js';
import { escapePointer } from '../kernel/validator.js';
import type { DesiredResource } from './desired.js';

/** A resource or removal whose body may hold secrets. */
type Tainted = Pick<DesiredResource, 'body' | 'taint'>;

/** Returns the resource with masked secrets and spans of the masks; the same object if it has none. */
export function maskResource<T extends Tainted>(resource: T): T {
  const { taint } = resource;
  if (taint === undefined || Object.keys(taint).length === 0) return resource;
  const spans = new Map(Object.entries(taint));
  const body = maskValue(resource.body, '', spans);
  if (!isRecord(body)) throw new Error('a masked body is an object like the body');
  return {
    ...resource,
    body,
    taint: Object.fromEntries([...spans].map(([path, marks]) => [path, maskedSpans(marks)])),
  };
}

export const isTainted = ({ taint = {} }: Pick<Tainted, 'taint'>): boolean => Object.keys(taint).length > 0;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function maskValue(value: unknown, path: string, taint: ReadonlyMap<string, readonly Span[]>): unknown {
  if (typeof value === 'string') return mask(value, taint.get(path));
  if (Array.isArray(value)) return value.map((item, index) => maskValue(item, `${path}/${index}`, taint));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, maskValue(member, `${path}/${escapePointer(key)}`, taint)]),
  );
}

/** Returns the spans of the masks in the masked text. */
function maskedSpans(spans: readonly Span[]): Span[] {
  let shift = 0;
  return spans.map((span) => {
    const start = span.start + shift;
    const end = start + maskOf(span).length;
    shift = end - span.end;
    return { ...span, start, end };
  });
}

/** Returns every secret part of the body with its mask, for `scrubber` in `src/kernel/tainted.ts`. */
export function secretValues({ body, taint = {} }: Pick<DesiredResource, 'body' | 'taint'>): readonly Scrubbed[] {
  const spans = new Map(Object.entries(taint));
  return spans.size === 0 ? [] : valuesIn(body, '', spans);
}

function valuesIn(value: unknown, path: string, taint: ReadonlyMap<string, readonly Span[]>): readonly Scrubbed[] {
  if (typeof value === 'string') {
    return (taint.get(path) ?? []).map((span) => ({ value: value.slice(span.start, span.end), shown: maskOf(span) }));
  }
  if (typeof value !== 'object' || value === null) return [];
  // Members of a list have their positions as keys.
  return Object.entries(value).flatMap(([key, member]) => valuesIn(member, `${path}/${escapePointer(key)}`, taint));
}
