/** Relations between the resources of a run: declared identities, dependencies, removals and directories made on the way. */
import { Fault } from '../../kernel/fault.js';
import { stableOrder } from '../../kernel/order.js';
import type { Step } from '../../resources/host.js';
import type { Family, PlanContext, ReadPurpose } from '../../resources/kind.js';
import { isTainted } from '../../resources/tainted-body.js';
import type { Ledger } from './ledger.js';
import { isRemoval, type KnownTarget, keyOf, type Target } from './target.js';

/** The part of a plan's context that changes while the run proceeds. */
export type Moment = Pick<PlanContext, 'accounts' | 'due' | 'mayAppear' | 'changesRepositories'> & {
  readonly purpose: ReadPurpose;
};

/** The place that an early removal makes for a wanted path. */
export interface Room {
  /** A path that is free now; null for none. */
  readonly free: string | null;
  /** Directories that orch made, and that give way. */
  readonly cleared: readonly string[];
}

export class Scope {
  private readonly targets: readonly Target[];
  private readonly declared = new Map<string, number>();
  /** Answers of `before`, by position; each resource is asked about several times. */
  private readonly dependencies = new Map<number, readonly number[]>();
  private readonly removed = new Set<string>();
  /** Those of `removed` that an absence takes. */
  private readonly absent = new Set<string>();
  /** Positions of the removals behind `removed`. */
  private readonly gone = new Set<number>();
  /** Directories that give way to a resource, by its position. */
  private readonly cleared = new Map<number, readonly string[]>();
  /** Missing parent directories, with the position of the first resource that makes each. */
  private readonly made = new Map<string, number>();
  /** Positions of absences that go before another one, such as a file before its directory; by position of the latter. */
  private readonly inside = new Map<number, number[]>();
  /** Files of which resources change a part, with the content that changes of the plan leave there. */
  private readonly edited = new Map<string, string | null>();
  /** Packages that are absent, which go together with those that need them. */
  private readonly absentPackages = new Set<string>();
  private readonly ledger: Ledger;

  /** Throws `protocol_violation` when a resource depends on a later one. */
  constructor(targets: readonly Target[], ledger: Ledger) {
    this.targets = targets;
    this.ledger = ledger;
    for (const { kind, source, index } of targets) {
      if (isRemoval(source)) continue;
      if (source.after.some((before) => before >= index)) {
        throw new Fault('protocol_violation', `resource ${index} of the run waits for one that comes later`);
      }
      // An absence provides nothing to others.
      const key = kind && !kind.absenceOf ? keyOf(kind.family, source.identity) : null;
      if (key && !this.declared.has(key)) this.declared.set(key, index);
    }
    for (const target of targets) {
      const path = editedBy(target);
      if (path !== null) this.edited.set(path, null);
    }
    this.noteAbsences(targets.filter(({ kind }) => kind?.absenceOf));
  }

  private noteAbsences(absences: readonly Target[]): void {
    const places = new Map(
      absences.map(({ kind, source, index }) => [keyOf(kind?.family ?? 'path', source.identity), index]),
    );
    for (const { kind, source, index } of absences) {
      if (kind?.family.startsWith('package-')) this.absentPackages.add(keyOf(kind.family, source.identity));
      for (const { family, identity } of kind?.absenceOf ? holdersOf(kind.absenceOf, source) : []) {
        const holder = places.get(keyOf(family, identity)) ?? -1;
        if (holder > index) this.inside.set(holder, [...(this.inside.get(holder) ?? []), index]);
      }
    }
  }

  /** Returns the positions of dependencies: those that the orchestrator names, and declared ones that the kind requires. */
  before(target: Target): readonly number[] {
    const known = this.dependencies.get(target.index);
    if (known !== undefined) return known;
    const found = this.dependenciesOf(target);
    this.dependencies.set(target.index, found);
    return found;
  }

  private dependenciesOf({ index, kind, source }: Target): readonly number[] {
    if (isRemoval(source)) return [];
    if (kind === null) return source.after;
    if (kind.absenceOf) return [...new Set([...source.after, ...(this.inside.get(index) ?? [])])];
    const needed = holdersOf(kind, source).map(({ family, identity }) => this.declared.get(keyOf(family, identity)));
    const earlier = needed.filter((at) => at !== undefined && at < index) as readonly number[];
    return earlier.length === 0 ? source.after : [...new Set([...source.after, ...earlier])];
  }

  /** True when `inner` must be removed before `outer`, such as a file before its directory. */
  isWithin(inner: Target, outer: Target): boolean {
    if (inner.kind === null || outer.kind === null) return false;
    const key = keyOf(outer.kind.family, outer.source.identity);
    return inner.kind.requires(inner.source.body).some(({ family, identity }) => keyOf(family, identity) === key);
  }

  /** Records a removal that was done or, in a plan, will be. */
  noteRemoved({ kind, source, index }: Target): void {
    if (kind === null) return;
    this.gone.add(index);
    this.removed.add(keyOf(kind.family, source.identity));
    if (kind.absenceOf) this.absent.add(keyOf(kind.family, source.identity));
  }

  /** Records what the steps of a purge delete. */
  noteDeleted(steps: readonly Step[]): void {
    for (const step of steps) {
      if (step.do === 'remove-file' || step.do === 'remove-tree') this.removed.add(keyOf('path', step.path));
    }
  }

  /** True for a removal of something that an absence before it takes. */
  isTaken({ kind, source }: Target): boolean {
    return (
      kind !== null && isRemoval(source) && !kind.absenceOf && this.absent.has(keyOf(kind.family, source.identity))
    );
  }

  /** True when `noteRemoved` has recorded it. */
  isRemoved({ index }: Target): boolean {
    return this.gone.has(index);
  }

  /** Records the room that an early removal has made for a wanted path. */
  noteRoom({ index }: Target, { free, cleared }: Room): void {
    if (free !== null) this.removed.add(keyOf('path', free));
    if (cleared.length > 0) this.cleared.set(index, innermostFirst([...(this.cleared.get(index) ?? []), ...cleared]));
  }

  /** Records missing parent directories that a resource makes. */
  noteMade({ index }: Target, directories: readonly string[]): void {
    for (const directory of directories) {
      if (index < (this.made.get(directory) ?? Number.POSITIVE_INFINITY)) this.made.set(directory, index);
    }
  }

  /** Records the contents that the steps of a plan write, as far as later resources change a part of them. */
  noteWritten(steps: readonly Step[]): void {
    for (const step of steps) {
      if (step.do !== 'write-file' || typeof step.content !== 'string') continue;
      if (this.edited.has(step.path)) this.edited.set(step.path, step.content);
    }
  }

  /** Returns the directories that give way to a resource, innermost first. */
  clearedFor({ index }: Target): readonly string[] {
    return this.cleared.get(index) ?? [];
  }

  /** @param memo [default: the ledger's] */
  contextOf(target: Target, moment: Moment, memo: string | null = this.ledger.memo(target.key)): PlanContext {
    const { index, source, kind: own } = target;
    const ownKey = own && keyOf(own.family, source.identity);
    const goesToo = (key: string) => own?.absenceOf !== undefined && key !== ownKey && this.absentPackages.has(key);
    return {
      ...moment,
      declares: (family, identity, kind) => {
        const at = this.declared.get(keyOf(family, identity));
        return at !== undefined && at < index && (kind === undefined || this.at(at)?.source.kind === kind);
      },
      comesLater: (family, identity) => (this.declared.get(keyOf(family, identity)) ?? -1) > index,
      isMade: (directory) => (this.made.get(directory) ?? index) < index,
      removes: (family, identity) => this.removed.has(keyOf(family, identity)) || goesToo(keyOf(family, identity)),
      cleared: this.clearedFor(target),
      written: (path) => this.edited.get(path) ?? null,
      sensitive: isTainted(source),
      memo,
      digest: (value) => this.ledger.digest(value),
    };
  }

  at(index: number): Target | undefined {
    return this.targets[index];
  }
}

/** Returns the file of which a resource changes a part; null for every other resource. */
export const editedBy = ({ kind, source }: Target): string | null => kind?.edits?.(source.body) ?? null;

const innermostFirst = (paths: readonly string[]): readonly string[] =>
  [...new Set(paths)].sort((a, b) => b.length - a.length);

/** Returns the resources that a resource needs if they are declared: such as its directory and all above it, and its owner. */
export const holdersOf = (kind: KnownTarget['kind'], { body }: Target['source']) => [
  ...kind.requires(body),
  ...(kind.above?.(body) ?? []),
];

/**
 * Returns removals in their order: last applied first, except that a resource is removed after all that need it, such as a
 * directory after everything in it. A directory is applied after a file in it when the file waits for something else, or when
 * an earlier apply made the directory.
 * @param applied removals in the order of application
 */
export function removalOrder(applied: readonly Target[]): readonly Target[] {
  const lastFirst = applied.toReversed();
  const everything = stableOrder(dependentsOf(lastFirst));
  // Services may require each other in a circle. Paths cannot.
  const order = everything ?? stableOrder(dependentsOf(lastFirst, 'path')) ?? lastFirst.keys();
  return [...order].flatMap((place) => lastFirst[place] ?? []);
}

/** Returns for each target the places of those that need it. */
function dependentsOf(targets: readonly Target[], of?: Family): readonly (readonly number[])[] {
  const dependents = targets.map((): number[] => []);
  const holders = new Map<string, number[]>();
  for (const [place, { kind, source }] of targets.entries()) {
    const at = dependents[place];
    if (at && kind && (of ?? kind.family) === kind.family) holders.set(keyOf(kind.family, source.identity), at);
  }
  for (const [place, { kind, source }] of targets.entries()) {
    if (kind === null) continue;
    for (const { family, identity } of holdersOf(kind, source)) {
      const dependentsOfHolder = holders.get(keyOf(family, identity));
      if (dependentsOfHolder !== undefined && dependentsOfHolder !== dependents[place]) dependentsOfHolder.push(place);
    }
  }
  return dependents;
}
