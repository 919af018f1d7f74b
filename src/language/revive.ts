/** Puts values of secrets into bodies that were kept without them. */
import type { Span } from '../kernel/tainted.js';
import { escapePointer } from '../kernel/validator.js';
import type { DesiredResource } from '../resources/desired.js';
import type { SecretSource } from './fill.js';

/** A body with masks in the place of secrets, and where they stand. */
type Masked = Pick<DesiredResource, 'body' | 'taint'>;

/** The names of the secrets in a body or in some members of it, each once. */
export function secretsIn({ taint = {} }: Pick<Masked, 'taint'>, members?: readonly string[]): readonly string[] {
  const spans = Object.entries(taint).flatMap(([pointer, marks]) => (isWithin(pointer, members) ? marks : []));
  return [...new Set(spans.map(({ secret }) => secret))];
}

/** Why one of the secrets is not to be had: the sentence that names it; null when all are. */
export function refusalOf(names: readonly string[], source: SecretSource): string | null {
  for (const name of names) {
    const found = source(name);
    if (found === null || 'refused' in found) {
      return `the secret "${name}" ${found?.refused ?? 'does not exist any more'}`;
    }
  }
  return null;
}

/**
 * The same with the current values of secrets in the place of the masks; with `members`, only in those, and the masks stand
 * elsewhere. The secrets have to be there: `refusalOf`.
 */
export function revive<T extends Masked>(masked: T, source: SecretSource, members?: readonly string[]): T {
  const { body, taint: marks } = masked;
  if (marks === undefined) return masked;
  const taint: Record<string, Span[]> = { ...marks };
  return { ...masked, body: fillMembers(body, ''), taint };

  function fillMembers(record: object, path: string): Record<string, unknown> {
    return Object.fromEntries(
      Object.entries(record).map(([key, member]) => [key, fill(member, `${path}/${escapePointer(key)}`)]),
    );
  }

  function fill(value: unknown, path: string): unknown {
    if (Array.isArray(value)) return value.map((item, index) => fill(item, `${path}/${index}`));
    if (typeof value === 'object' && value !== null) return fillMembers(value, path);
    const spans = marks?.[path];
    if (typeof value !== 'string' || spans === undefined || !isWithin(path, members)) return value;
    const filled = putValues(value, spans, source);
    taint[path] = filled.spans;
    return filled.text;
  }
}

/** Whether a pointer leads into one of the members; without members, anywhere. */
export const isWithin = (pointer: string, members: readonly string[] | undefined): boolean =>
  members === undefined || members.some((name) => `${pointer}/`.startsWith(`/${escapePointer(name)}/`));

function putValues(masked: string, spans: readonly Span[], source: SecretSource): { text: string; spans: Span[] } {
  const filled: Span[] = [];
  let text = '';
  let from = 0;
  for (const { start, end, secret } of spans) {
    text += masked.slice(from, start);
    const found = source(secret);
    if (found === null || 'refused' in found) throw new Error(`the secret ${secret} was there a moment ago`);
    filled.push({ start: text.length, end: text.length + found.value.length, secret, tag: found.tag });
    text += found.value;
    from = end;
  }
  return { text: text + masked.slice(from), spans: filled };
}
