/**
 * The believed state of a machine: the resources that its applies have put under management. The orchestrator keeps it in
 * its store and `--local` keeps it in a file. Both change it by these rules (`docs/protocols/apply.md`).
 */
import { mapped, type Steps } from '../kernel/steps.js';
import type { DesiredResource, Origin, Removal } from './desired.js';
import { type Listener, listenersOf } from './listeners.js';
import { resourceKey } from './resource-key.js';
import type { ResourceResult } from './result.js';

/** The result of one item of an apply, as far as the believed state depends on it. */
export interface ItemOutcome {
  /** Position among the resources followed by the removals. */
  readonly index: number;
  readonly status: ResourceResult['status'];
  readonly action: ResourceResult['action'];
  /**
   * True if the resource existed before this apply touched it; null when unknown, and for a creation that failed and left
   * nothing.
   */
  readonly existed: boolean | null;
}

export interface ReportedApply {
  /** ULID, above those of all earlier applies. */
  readonly operationId: string;
  /** Resources as dispatched, with secrets masked. */
  readonly resources: readonly DesiredResource[];
  readonly removals: readonly Removal[];
  readonly outcomes: readonly ItemOutcome[];
}

/** A resource in the believed state. */
interface LastApplied {
  readonly kind: string;
  readonly origin: Origin;
  readonly operation_id: string;
}

export interface BelievedChange {
  /** Resources to add or to replace, with their position in the apply. */
  readonly put: readonly {
    readonly resource: DesiredResource;
    readonly index: number;
    readonly origin: Origin;
    /** Resources that react when it goes; absent for none. */
    readonly listeners?: readonly Listener[];
  }[];
  /** Removals that succeeded. */
  readonly remove: readonly Removal[];
}

/**
 * Returns what an apply changes: the resources and removals that succeeded, and what it has half created. Other failed and skipped
 * items stay as they were, and so does what a later apply wrote.
 */
export function* believedChange(
  { operationId, resources, removals, outcomes }: ReportedApply,
  lastOf: (item: DesiredResource | Removal) => LastApplied | undefined,
): Steps<BelievedChange> {
  const put: BelievedChange['put'][number][] = [];
  const listeners = listenersOf(resources);
  const remove: Removal[] = [];
  for (const { index, status, action, existed } of outcomes) {
    yield;
    const isWell = status === 'unchanged' || status === 'changed';
    const isBegun = status === 'failed' && action === 'create' && existed === false;
    if (!isWell && !isBegun) continue;
    const resource = resources[index];
    const removal = removals[index - resources.length];
    const item = resource ?? removal;
    const last = item && lastOf(item);
    if (last !== undefined && (last.operation_id > operationId || isBegun)) continue;
    // A file in the place of a directory is another resource under the same key.
    const origin = last?.kind === resource?.kind ? last?.origin : undefined;
    if (resource !== undefined) {
      const own = listeners.get(index);
      put.push({ resource, index, origin: origin ?? originOf(existed), ...(own && { listeners: own }) });
    } else if (removal !== undefined) remove.push(removal);
  }
  return { put, remove };
}

/** A resource that may have existed before counts as adopted, and is never removed. */
const originOf = (existed: boolean | null): Origin => (existed === false ? 'created' : 'adopted');

/**
 * Returns the managed resources that are not desired, in their order. A file in whose place a directory is desired is one of
 * them, and the other way round.
 */
export function* noLongerDesired<Managed extends { readonly kind: string }>(
  managed: readonly Managed[],
  keyOf: (one: Managed) => string,
  desired: readonly DesiredResource[],
): Steps<readonly Managed[]> {
  const kinds = new Map(yield* mapped(desired, (one) => [resourceKey(one), one.kind] as const));
  const isDesired = yield* mapped(managed, (one) => kinds.get(keyOf(one)) === one.kind);
  return managed.filter((_, index) => !isDesired[index]);
}
