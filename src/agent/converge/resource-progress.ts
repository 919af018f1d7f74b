/** The progress of a run: the status of each resource, and which resources it blocks. */
import { isBad, skipped } from './examined.js';
import type { Finding, Status } from './run-item.js';
import { editedBy, type Scope } from './scope.js';
import { isRemoval, type Target } from './target.js';

/** Families whose changes bring nothing but the resource itself. */
const SELF_CONTAINED: ReadonlySet<string | undefined> = new Set([
  'group',
  'sysctl-linux',
  'locale-linux',
  'alternatives-linux',
  undefined,
]);

/** Files that make packages available: settings of package managers, and lists and keys of their repositories. */
const REPOSITORIES = /^\/(etc\/(apt|dnf|yum\.repos\.d|pki\/rpm-gpg)|usr\/share\/keyrings)\//;

export class ResourceProgress {
  private readonly scope: Scope;
  private readonly statuses = new Map<number, Status>();
  /** Removals that failed or were skipped. */
  private readonly failedRemovals = new Set<Target>();
  private hasInstallPending = false;
  private hasRepositoryPending = false;

  constructor(scope: Scope) {
    this.scope = scope;
  }

  note(target: Target, status: Status): void {
    this.statuses.set(target.index, status);
    if (status === 'pending' && addsOthers(target)) this.hasInstallPending = true;
    if (status === 'pending' && isOfRepository(target)) this.hasRepositoryPending = true;
    if (isRemoval(target.source) && isBad(status)) this.failedRemovals.add(target);
  }

  /** True when a pending change may bring more than the resource itself. */
  get mayAddOthers(): boolean {
    return this.hasInstallPending;
  }

  /** True when a pending change concerns the repositories of a package manager. */
  get changesRepositories(): boolean {
    return this.hasRepositoryPending;
  }

  /** True when a resource was changed or, in a plan, would be. */
  hasMoved(index: number): boolean {
    const status = this.statuses.get(index);
    return status === 'changed' || status === 'pending';
  }

  statusOf({ index }: Target): Status | undefined {
    return this.statuses.get(index);
  }

  hasFailed(target: Target): boolean {
    return this.statusOf(target) === 'failed';
  }

  /** Returns the finding of a resource that another one blocks; null when none does. */
  blockOf(target: Target): Finding | null {
    const blocker = isRemoval(target.source) ? this.failedRemovalIn(target) : this.failedBefore(target);
    if (blocker === undefined) return null;
    const { kind, identity } = blocker.source;
    const reason = `${kind} ${identity} ${this.statuses.get(blocker.index) === 'skipped' ? 'was skipped' : 'failed'}`;
    return skipped(target, { code: 'dependency_failed', message: `not attempted, because ${reason}` }, reason);
  }

  private failedBefore(target: Target): Target | undefined {
    const before = this.scope.before(target).find((index) => isBad(this.statuses.get(index)));
    return before === undefined ? undefined : this.scope.at(before);
  }

  /** Returns a resource whose failed removal leaves it in a directory that is to be removed. */
  private failedRemovalIn(directory: Target): Target | undefined {
    for (const other of this.failedRemovals) if (this.scope.isWithin(other, directory)) return other;
    return undefined;
  }
}

/** Returns the path of a resource, or the file of which it changes a part. */
const pathOf = (target: Target): string | null =>
  target.kind?.family === 'path' ? target.source.identity : editedBy(target);

export function addsOthers(target: Target): boolean {
  return pathOf(target) === null ? !SELF_CONTAINED.has(target.kind?.family) : isOfRepository(target);
}

const isOfRepository = (target: Target): boolean => REPOSITORIES.test(pathOf(target) ?? '');
