/** Restores values of secrets in stored bodies, which hold masks in their place. */
import type { Span } from '../kernel/tainted.js';
import { escapePointer } from '../kernel/validator.js';
import { CATALOGUE } from '../resources/catalogue.js';
import type { DesiredResource, Removal } from '../resources/desired.js';
import type { ResourceResult } from '../resources/result.js';
import type { SecretSource } from './filling.js';

/** A body with masks in place of secrets, and the positions of the masks. */
type Masked = Pick<DesiredResource, 'body' | 'taint'>;

/** Returns the names of the secrets in a body, or in the given members, without duplicates. */
export function secretsIn({ taint = {} }: Pick<Masked, 'taint'>, members?: readonly string[]): readonly string[] {
  const spans = Object.entries(taint).flatMap(([pointer, marks]) => (isWithin(pointer, members) ? marks : []));
  return [...new Set(spans.map(({ secret }) => secret))];
}

/** Returns a sentence about the first unavailable secret; null when all are available. */
export function refusalOf(names: readonly string[], source: SecretSource): string | null {
  for (const name of names) {
    const found = source(name);
    if (found === null || 'refused' in found) {
      return `the secret "${name}" ${found?.refused ?? 'no longer exists'}`;
    }
  }
  return null;
}

/**
 * Replaces masks by the current values of secrets. With `members`, masks elsewhere stay. The caller first checks with
 * `refusalOf` that all secrets are available.
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

/** Returns true when a pointer leads into one of the members, or without `members`. */
const isWithin = (pointer: string, members: readonly string[] | undefined): boolean =>
  members === undefined || members.some((name) => `${pointer}/`.startsWith(`/${escapePointer(name)}/`));

function putValues(masked: string, spans: readonly Span[], source: SecretSource): { text: string; spans: Span[] } {
  const filled: Span[] = [];
  let text = '';
  let from = 0;
  for (const { start, end, secret } of spans) {
    text += masked.slice(from, start);
    const found = source(secret);
    if (found === null || 'refused' in found) throw new Error(`the secret ${secret} disappeared during the run`);
    filled.push({ start: text.length, end: text.length + found.value.length, secret, tag: found.tag });
    text += found.value;
    from = end;
  }
  return { text: text + masked.slice(from), spans: filled };
}

export interface RevivedRemovals {
  /** Removals that can be sent, with the secrets they need. */
  readonly removals: readonly Removal[];
  /** Results of removals without their secrets; these resources stay. */
  readonly failures: readonly ResourceResult[];
}

/** Returns the names of all secrets that the removals need. */
export const secretsOfRemovals = (masked: readonly Removal[]): ReadonlySet<string> =>
  new Set(masked.flatMap((removal) => secretsIn(removal, neededBy(removal))));

/** @param masked removals as they were applied, with the positions of their secrets */
export function reviveRemovals(masked: readonly Removal[], source: SecretSource): RevivedRemovals {
  const removals: Removal[] = [];
  const failures: ResourceResult[] = [];
  for (const removal of masked) {
    const needed = neededBy(removal);
    const refusal = refusalOf(secretsIn(removal, needed), source);
    if (refusal !== null) failures.push(notRemoved(removal, refusal));
    else removals.push(needed.length === 0 ? withoutSecrets(removal) : revive(removal, source, needed));
  }
  return { removals, failures };
}

/** Returns the body members that a removal uses; a released resource needs none. */
function neededBy({ kind: name, origin, body }: Removal): readonly string[] {
  const kind = CATALOGUE.get(name);
  return origin === 'created' && kind?.removes?.(body) !== false ? (kind?.removalNeeds ?? []) : [];
}

/** Drops optional members with a secret, so that the agent never takes a mask for a value. */
function withoutSecrets({ taint, ...removal }: Removal): Removal {
  if (taint === undefined) return removal;
  const schema: { readonly required?: readonly string[] } = CATALOGUE.get(removal.kind)?.schema ?? {};
  const isKept = (name: string) =>
    schema.required?.includes(name) === true || !Object.keys(taint).some((pointer) => isWithin(pointer, [name]));
  return { ...removal, body: Object.fromEntries(Object.entries(removal.body).filter(([name]) => isKept(name))) };
}

function notRemoved({ module, kind, identity, id, name }: Removal, refusal: string): ResourceResult {
  const message = `${refusal}, and it takes that to remove this: give it back, and apply again`;
  return {
    module,
    kind,
    identity,
    id,
    name,
    action: 'remove',
    status: 'failed',
    changes: [],
    diff: null,
    sensitive: true,
    reason: null,
    error: { code: 'secret_unavailable', message },
    duration_ms: 0,
  };
}
