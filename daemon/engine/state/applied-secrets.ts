/** Restores secret values in applied resources: the store keeps masks and hashes, and a drift check needs values. */

import { mapped, type Steps } from '../../../src/kernel/steps.js';
import type { SecretSource } from '../../../src/language/filling.js';
import { refusalOf, revive, secretsIn } from '../../../src/language/revive.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { keyText, resourceKey } from '../../../src/resources/resource-key.js';
import type { ResourceResult } from '../../../src/resources/result.js';
import { type AppliedResourceRow, hasSecrets, secretHashesOf } from './applied-resource-store.js';
import type { SecretHashes } from './secret-hashes.js';

/** Leading digits of a hash that are shown to operators, as in a mask. */
const TAG_DIGITS = 4;

const tagOf = (hash: string): string => hash.slice(0, TAG_DIGITS);

/** Resources that a drift check can send, and results of those that it cannot compare. */
interface Revived {
  readonly resources: readonly DesiredResource[];
  /** Results of the resources whose secrets the agent may no longer have. */
  readonly failures: readonly ResourceResult[];
}

/** Returns the applied resources with current secret values in the place of masks. */
export function* reviveApplied(applied: readonly DesiredResource[], source: SecretSource): Steps<Revived> {
  const resources: DesiredResource[] = [];
  const failures: ResourceResult[] = [];
  for (const masked of applied) {
    const refusal = refusalOf(secretsIn(masked), source);
    if (refusal === null) resources.push(revive(masked, source));
    else failures.push(notCompared(masked, refusal));
    yield;
  }
  return { resources, failures };
}

/** Returns the names of all secrets in the resources. */
export function* secretsOf(applied: readonly Pick<DesiredResource, 'taint'>[]): Steps<ReadonlySet<string>> {
  return new Set((yield* mapped(applied, (resource) => secretsIn(resource))).flat());
}

/** Hashes of the secrets that a managed resource was applied with. */
export interface AppliedSecrets {
  /** `resourceKey` of the resource. */
  readonly key: string;
  readonly hashes: SecretHashes;
}

/** Returns the secrets of the rows that have some. */
export const secretsOfRows = (rows: readonly AppliedResourceRow[]): readonly AppliedSecrets[] =>
  rows.filter(hasSecrets).map((row) => ({ key: keyText(row), hashes: secretHashesOf(row) }));

/**
 * Returns a function that adds a note to pending results whose secrets have changed since the last apply.
 * @param now hashes of the values used for the results
 */
export function changedSecretNotes(
  applied: readonly AppliedSecrets[],
  now: ReadonlyMap<string, string>,
): (result: ResourceResult) => ResourceResult {
  const notes = new Map<string, string>();
  for (const { key, hashes } of applied) {
    const note = noteOf(hashes, now);
    if (note !== null) notes.set(key, note);
  }
  return (result) => {
    const note = result.status === 'pending' ? notes.get(resourceKey(result)) : undefined;
    if (note === undefined) return result;
    return { ...result, reason: result.reason === null ? note : `${result.reason}; ${note}` };
  };
}

function noteOf(hashes: SecretHashes, values: ReadonlyMap<string, string>): string | null {
  const changes = Object.entries(hashes).flatMap(([name, before]) => {
    const now = values.get(name);
    return now === undefined || now === before ? [] : [`${name} changed since (#${tagOf(before)}, now #${tagOf(now)})`];
  });
  return changes.length === 0 ? null : `secret ${changes.join(', secret ')}`;
}

function notCompared({ module, kind, identity, id, name }: DesiredResource, refusal: string): ResourceResult {
  const message = `${refusal}, so that what was applied with it cannot be compared`;
  return {
    module,
    kind,
    identity,
    id,
    name,
    action: 'none',
    status: 'failed',
    changes: [],
    diff: null,
    sensitive: true,
    reason: null,
    error: { code: 'secret_unavailable', message },
    duration_ms: 0,
  };
}
