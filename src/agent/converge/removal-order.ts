/** The order of a run's removals: those that stand in the way of a wanted resource go before it, all others last. */
import type { Host } from '../../resources/host.js';
import type { NeededChange, Obstacle, ResourceKind } from '../../resources/kind.js';
import type { Examined } from './examined.js';
import type { Ledger } from './ledger.js';
import type { Place } from './places.js';
import type { SameThings } from './same-things.js';
import { holdersOf, type Room } from './scope.js';
import { type KnownTarget, keyOf, madeKey, type Target } from './target.js';

interface RemovalOrderOptions {
  readonly host: Host;
  readonly ledger: Ledger;
  /** In their order, each after those that need it. */
  readonly removals: readonly Target[];
}

export class RemovalOrder {
  private readonly options: RemovalOrderOptions;
  private readonly begun = new Set<Target>();

  constructor(options: RemovalOrderOptions) {
    this.options = options;
  }

  get all(): readonly Target[] {
    return this.options.removals;
  }

  /** Removals that have not begun. */
  get rest(): readonly Target[] {
    return this.options.removals.filter((target) => !this.begun.has(target));
  }

  /** Takes removals out of the rest. */
  begin(targets: readonly Target[]): void {
    for (const target of targets) this.begun.add(target);
  }

  /** True if one of the rest is of a family that can stand in the way of these resources. */
  mayHinder(targets: readonly Target[], same: SameThings): boolean {
    const families = new Set(targets.map(({ kind }) => kind?.family));
    return this.rest.some(
      (target) =>
        mayGoFirst(target, same) &&
        (families.has(target.kind?.family) || (families.has('group') && target.kind?.family === 'user')),
    );
  }

  /**
   * Returns those of the rest that have to go before these resources, each after those that need it.
   * @param causes removals whose triggers these resources answer
   */
  async before(examined: readonly Examined[], causes: readonly Target[], same: SameThings): Promise<readonly Target[]> {
    const open = this.rest.filter((target): target is KnownTarget => mayGoFirst(target, same));
    const needs = examined.flatMap(needOf);
    const found = new Set<Target>(open.filter((target) => causes.includes(target)));
    if (open.length === 0 || (needs.length === 0 && found.size === 0)) return [];
    for (const { target } of needs) {
      for (const removal of open) if (isPathInTheWay(removal, target, same.places)) found.add(removal);
    }
    for (const [kind, members] of byKind(needs)) {
      for (const removal of await this.obstaclesOf(kind, members, open)) found.add(removal);
    }
    return this.withThoseThatNeed(found, open, same.places);
  }

  /**
   * Returns what an early removal leaves for a wanted path: a path that is free then, and directories that orch made and that
   * have to give way.
   */
  roomFor(target: Target, removal: Target, { places }: SameThings): Room {
    const [own, other] = [places.get(target.index), places.get(removal.index)];
    const nothing = { free: null, cleared: [] };
    if (own === undefined || other === undefined) return nothing;
    if (own.self === other.self) return { ...nothing, free: target.source.identity };
    if (own.isIn(other)) return { ...nothing, free: own.upTo(other).at(-1) ?? null };
    if (!other.isIn(own)) return nothing;
    const way = [...other.upTo(own).slice(0, -1), target.source.identity];
    return { ...nothing, cleared: way.filter((path) => this.options.ledger.memo(madeKey(path)) !== null) };
  }

  private async obstaclesOf(
    kind: ResourceKind,
    members: readonly Need[],
    open: readonly KnownTarget[],
  ): Promise<readonly Target[]> {
    const { host, ledger } = this.options;
    if (kind.obstacles === undefined) return [];
    const wants = members.map(({ target: { source, key }, changes }): NeededChange<(typeof source)['body']> => {
      const { module, identity, body } = source;
      return { module, kind: kind.kind, identity, body, changes, isNew: ledger.memo(key) === null };
    });
    const targets = new Map<Obstacle, Target>(open.map((target) => [target.source, target]));
    const found = await kind.obstacles(host, wants, [...targets.keys()]);
    return found.flatMap((obstacle) => targets.get(obstacle) ?? []);
  }

  /** Adds the removals that have to precede these, such as those of files in a directory. */
  private withThoseThatNeed(
    found: Set<Target>,
    open: readonly KnownTarget[],
    places: ReadonlyMap<number, Place>,
  ): readonly Target[] {
    // Each removal stands behind those that need it.
    for (const holder of open.toReversed()) {
      if (!found.has(holder)) continue;
      for (const other of open) if (needs(other, holder, places)) found.add(other);
    }
    return open.filter((target) => found.has(target));
  }
}

/** A wanted resource that cannot stay as it is. */
interface Need {
  readonly target: KnownTarget;
  readonly changes: NeededChange<object>['changes'];
}

function needOf(examined: Examined): readonly Need[] {
  if ('pending' in examined) {
    const { target, change } = examined.pending;
    return target.kind === null ? [] : [{ target, changes: change.changes }];
  }
  const { target, status } = examined.finding;
  return target.kind === null || status !== 'failed' ? [] : [{ target, changes: [] }];
}

function byKind(needs: readonly Need[]): ReadonlyMap<ResourceKind, readonly Need[]> {
  const kinds = new Map<ResourceKind, Need[]>();
  for (const need of needs) {
    const members = kinds.get(need.target.kind);
    if (members) members.push(need);
    else kinds.set(need.target.kind, [need]);
  }
  return kinds;
}

/** Resources that orch did not create are released, and those with an heir of their kind stay. */
function mayGoFirst({ kind, source, index }: Target, { heirs }: SameThings): boolean {
  if (kind === null || !('origin' in source) || source.origin !== 'created') return false;
  const heir = heirs.get(index);
  return heir === undefined || (heir.isSame && heir.target.source.kind !== source.kind);
}

const isDirectory = ({ source }: Target): boolean => source.kind.startsWith('directory-');

/** True for a path of another type at the same place, for a file above, and for anything within a future file. */
function isPathInTheWay(removal: Target, want: Target, places: ReadonlyMap<number, Place>): boolean {
  const [other, own] = [places.get(removal.index), places.get(want.index)];
  if (other === undefined || own === undefined) return false;
  if (other.self === own.self) return removal.source.kind !== want.source.kind;
  return (!isDirectory(removal) && own.isIn(other)) || (!isDirectory(want) && other.isIn(own));
}

function needs(other: Target, holder: Target, places: ReadonlyMap<number, Place>): boolean {
  if (other === holder || other.kind === null || holder.kind === null) return false;
  const key = keyOf(holder.kind.family, holder.source.identity);
  if (holdersOf(other.kind, other.source).some(({ family, identity }) => keyOf(family, identity) === key)) return true;
  const [inner, outer] = [places.get(other.index), places.get(holder.index)];
  return inner !== undefined && outer !== undefined && inner.isIn(outer);
}
