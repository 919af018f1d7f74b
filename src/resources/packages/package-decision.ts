/** Plans packages of managers that have one installed version of each (brew, choco, winget). */

import type { CommandRefusal } from '../command.js';
import type { RunStep } from '../host.js';
import type { Decision, PlanContext } from '../kind.js';
import { type PackageBody, takesAnyVersion, wantedVersion } from './package-body.js';

/** A package as its manager reports it. */
export type PackageFact =
  | {
      readonly is: 'absent' /** The version that an installation would bring, where the manager tells. */;
      readonly newest: string | null;
    }
  | {
      readonly is: 'installed';
      readonly version: string;
      /** A newer version in the index, or null. */
      readonly newer: string | null;
      /** True when the manager was ordered to keep the version. */
      readonly isPinned: boolean;
    }
  | { readonly is: 'unreadable'; readonly refusal: CommandRefusal };

export interface PackageManager {
  isSameVersion(one: string, other: string): boolean;
  /** @param version null for the newest */
  install(version: string | null): readonly RunStep[] | CommandRefusal;
  upgrade(): readonly RunStep[];
  /** Changes the installed version to exactly another one. */
  change(from: string, to: string): readonly RunStep[] | CommandRefusal;
  /** Command line that unpins the package. */
  readonly unpin: string;
}

export function decidePackage(
  want: PackageBody,
  have: PackageFact,
  context: PlanContext,
  manager: PackageManager,
): Decision {
  const version = wantedVersion(want);
  switch (have.is) {
    case 'unreadable':
      return { action: 'fail', ...have.refusal };
    case 'absent':
      return carriedOut('create', null, version ?? have.newest ?? 'latest', manager.install(version));
    case 'installed': {
      if (takesAnyVersion(want)) return { action: 'none' };
      const goal = goalOf(version, have, context, manager);
      if (goal === null) return { action: 'none' };
      if (have.isPinned) return pinned(want, have.version, manager);
      const steps = version === null ? manager.upgrade() : manager.change(have.version, version);
      return carriedOut('update', have.version, goal, steps);
    }
  }
}

/** Returns the version to change to, or null. Drift compares with the version that the last apply left. */
function goalOf(
  version: string | null,
  have: Extract<PackageFact, { is: 'installed' }>,
  { purpose, memo }: PlanContext,
  { isSameVersion }: PackageManager,
): string | null {
  const goal = version ?? (purpose === 'drift' ? memo : have.newer);
  return goal === null || isSameVersion(goal, have.version) ? null : goal;
}

const carriedOut = (
  action: 'create' | 'update',
  before: string | null,
  after: string,
  steps: readonly RunStep[] | CommandRefusal,
): Decision =>
  'code' in steps ? { action: 'fail', ...steps } : { action, changes: [{ field: 'version', before, after }], steps };

const pinned = ({ name }: PackageBody, version: string, { unpin }: PackageManager): Decision => ({
  action: 'fail',
  code: 'package_held',
  message: `${name} is pinned at ${version}; let it go with "${unpin}", or declare that version`,
});

export function decidePackageRemoval(have: PackageFact, steps: readonly RunStep[]): Decision {
  if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
  return have.is === 'absent' ? { action: 'none' } : { action: 'remove', changes: [], steps };
}

/** Returns the installed version as memo, for drift. */
export const packageMemo = (have: PackageFact): string | null => (have.is === 'installed' ? have.version : null);
