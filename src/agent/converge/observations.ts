/** Reads many resources, one read per kind; what goes wrong with one is the matter of that one alone. */

import { Fault, messageOf } from '../../kernel/fault.js';
import type { FaultCode } from '../../kernel/fault-code.js';
import type { Host } from '../../resources/host.js';
import type { Body, ReadPurpose, ResourceKind } from '../../resources/kind.js';
import type { KnownTarget, Refusal } from './target.js';

export type Observation =
  | { readonly have: unknown; readonly refusal: null }
  | { readonly have: null; readonly refusal: Refusal };

/** By position in the run. */
export async function observeAll(
  targets: readonly KnownTarget[],
  host: Host,
  purpose: ReadPurpose,
): Promise<ReadonlyMap<number, Observation>> {
  const kinds = new Map<ResourceKind, KnownTarget[]>();
  for (const target of targets) {
    const same = kinds.get(target.kind);
    if (same) same.push(target);
    else kinds.set(target.kind, [target]);
  }
  const found = new Map<number, Observation>();
  for (const [kind, all] of kinds) {
    for (const batch of batches(all, kind.batch ?? all.length)) {
      const observations = await readTogether(kind, batch, host, purpose);
      for (const [at, { index }] of batch.entries()) found.set(index, observations[at] ?? missing(kind));
    }
  }
  return found;
}

async function readTogether(
  kind: ResourceKind,
  batch: readonly KnownTarget[],
  host: Host,
  purpose: ReadPurpose,
): Promise<readonly Observation[]> {
  const read = async (bodies: readonly Body[]) => await kind.read(host, bodies, purpose);
  try {
    const haves = await read(batch.map(({ source }) => source.body));
    return haves.map((have) => ({ have, refusal: null }));
  } catch (error) {
    if (batch.length === 1) return [{ have: null, refusal: refusalOf(error, 'observe_failed') }];
  }
  const alone: Observation[] = [];
  for (const target of batch) alone.push(...(await readTogether(kind, [target], host, purpose)));
  return alone;
}

/** The refusal that stands for something thrown. */
export const refusalOf = (error: unknown, fallback: FaultCode): Refusal =>
  error instanceof Fault
    ? { code: error.code, message: error.message }
    : { code: fallback, message: `an error that orch did not expect: ${messageOf(error)}` };

const missing = (kind: ResourceKind): Observation => ({
  have: null,
  refusal: { code: 'observe_failed', message: `${kind.kind} was not read` },
});

function batches<T>(all: readonly T[], size: number): readonly (readonly T[])[] {
  const cut: T[][] = [];
  for (let at = 0; at < all.length; at += size) cut.push(all.slice(at, at + size));
  return cut;
}
