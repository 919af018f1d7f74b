/** What is sent to have resources removed: bodies that were kept without secrets, with those that their removal needs. */
import { CATALOGUE } from '../resources/catalogue.js';
import type { Removal } from '../resources/desired.js';
import type { ResourceResult } from '../resources/result.js';
import type { SecretSource } from './fill.js';
import { isWithin, refusalOf, revive, secretsIn } from './revive.js';

export interface RevivedRemovals {
  /** What can be sent. */
  readonly removals: readonly Removal[];
  /** Results of those whose secrets are not to be had, so that they stay as they are. */
  readonly failures: readonly ResourceResult[];
}

/** The names of all secrets that the removals need. */
export const secretsOfRemovals = (masked: readonly Removal[]): ReadonlySet<string> =>
  new Set(masked.flatMap((removal) => secretsIn(removal, neededBy(removal))));

/** @param masked as they were applied, with the marks of their secrets */
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

/** The members of its body that its removal makes something of; what is released needs none. */
const neededBy = ({ kind, origin }: Removal): readonly string[] =>
  origin === 'created' ? (CATALOGUE.get(kind)?.removalNeeds ?? []) : [];

/** The body without members that hold a secret, as far as it is whole without them: a mask must not be taken for a value. */
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
