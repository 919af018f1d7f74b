/** Reads many resources with one read per kind; a failure affects only the resource that caused it. */

import { Fault, type FaultCode, messageOf } from '../../kernel/fault.js';
import type { Host } from '../../resources/host.js';
import type { Body, ReadPurpose, ResourceKind, Surroundings } from '../../resources/kind.js';
import { isPurge } from '../../resources/purge.js';
import { DeclaredPaths } from './declared-paths.js';
import { isRemoval, type KnownTarget, type Refusal, type Target } from './target.js';

export type Observation =
  | { readonly have: unknown; readonly refusal: null }
  | { readonly have: null; readonly refusal: Refusal };

/** The observations of one run, by the positions of the resources in it. */
export class Observations {
  private readonly host: Host;
  private readonly purpose: ReadPurpose;
  private readonly all: readonly Target[];
  /** Answers since the last change of kinds that read all their resources with one query. */
  private readonly queried = new Map<number, Observation>();
  /** Newest observations of resources whose kinds keep a memo. */
  private readonly newest = new Map<number, Observation>();

  constructor(host: Host, purpose: ReadPurpose, all: readonly Target[]) {
    this.host = host;
    this.purpose = purpose;
    this.all = all;
  }

  async of(targets: readonly Target[]): Promise<ReadonlyMap<number, Observation>> {
    const found = new Map<number, Observation>();
    for (const [kind, wanted] of byKind(targets)) {
      const seen = kind.queried ? await this.query(kind, wanted) : await this.readAll(kind, wanted, this.purpose);
      for (const { index } of wanted) {
        const observation = seen.get(index) ?? missing(kind);
        found.set(index, observation);
        if (kind.memo) this.newest.set(index, observation);
      }
    }
    return found;
  }

  /** Observes what exists, without caches and indexes. */
  async before(targets: readonly Target[]): Promise<ReadonlyMap<number, Observation>> {
    const found = new Map<number, Observation>();
    for (const [kind, wanted] of byKind(targets)) {
      for (const [index, seen] of await this.readAll(kind, wanted, 'drift')) found.set(index, seen);
    }
    return found;
  }

  /** Returns the newest observation of a resource whose kind keeps a memo. */
  last(index: number): Observation | undefined {
    return this.newest.get(index);
  }

  /** Drops cached answers, because the machine is about to be changed. */
  forget(): void {
    this.queried.clear();
  }

  /** Reads all resources of the kind with one query and caches the answers until the next change. */
  private async query(kind: ResourceKind, wanted: readonly KnownTarget[]): Promise<ReadonlyMap<number, Observation>> {
    if (wanted.every(({ index }) => this.queried.has(index))) return this.queried;
    const [first] = wanted;
    const isRemovals = first !== undefined && isRemoval(first.source);
    const all = this.all.filter(
      (target): target is KnownTarget => target.kind === kind && isRemoval(target.source) === isRemovals,
    );
    for (const [index, seen] of await this.readAll(kind, all, this.purpose)) this.queried.set(index, seen);
    return this.queried;
  }

  private async readAll(
    kind: ResourceKind,
    targets: readonly KnownTarget[],
    purpose: ReadPurpose,
  ): Promise<ReadonlyMap<number, Observation>> {
    const found = new Map<number, Observation>();
    const [first] = targets;
    const why = first !== undefined && isRemoval(first.source) ? 'removal' : purpose;
    const near = targets.some(({ source }) => isPurge(source)) ? new DeclaredPaths(this.host, this.all) : undefined;
    for (const batch of batches(targets, kind.batch ?? targets.length)) {
      const observations = await readTogether(kind, batch, this.host, { purpose: why, near });
      for (const [at, { index }] of batch.entries()) found.set(index, observations[at] ?? missing(kind));
    }
    return found;
  }
}

/** Groups resources by kind. The caller does not mix desired resources and removals. */
function byKind(targets: readonly Target[]): ReadonlyMap<ResourceKind, readonly KnownTarget[]> {
  const kinds = new Map<ResourceKind, KnownTarget[]>();
  for (const target of targets) {
    if (target.kind === null) continue;
    const same = kinds.get(target.kind);
    if (same) same.push(target);
    else kinds.set(target.kind, [target]);
  }
  return kinds;
}

async function readTogether(
  kind: ResourceKind,
  batch: readonly KnownTarget[],
  host: Host,
  { purpose, near }: { readonly purpose: ReadPurpose; readonly near: Surroundings | undefined },
): Promise<readonly Observation[]> {
  const read = async (bodies: readonly Body[]) => await kind.read(host, bodies, purpose, near);
  try {
    const haves = await read(batch.map(({ source }) => source.body));
    return haves.map((have) => ({ have, refusal: null }));
  } catch (error) {
    if (batch.length === 1) return [{ have: null, refusal: refusalOf(error, 'observe_failed') }];
  }
  const alone: Observation[] = [];
  for (const target of batch) alone.push(...(await readTogether(kind, [target], host, { purpose, near })));
  return alone;
}

/** Converts a thrown value into a refusal. */
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
