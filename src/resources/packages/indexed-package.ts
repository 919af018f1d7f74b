/** What is known of a package whose manager keeps an index of what it offers, and what is particular to each manager. */
import type { Step } from '../host.js';
import type { CommandRefusal, Family } from '../kind.js';
import { type PackageBody, wantedVersion } from './package-body.js';

/** What the machine has of a package, whole or not. */
export interface InstalledPackage {
  readonly version: string;
  /** Every version that is there, for managers that keep several beside each other. */
  readonly others?: readonly string[];
  /** What the manager calls a state in which the package does not work, such as `half-configured`; null when it is whole. */
  readonly fault: string | null;
}

/** What the index of the machine knows of a package. */
export interface PackageOffer {
  /** What the manager would take by itself; null when it would take none. */
  readonly newest: string | null;
  /** Every version that can be installed, the newest first. */
  readonly versions: readonly string[];
  /** Why there is none, when more is known than that. */
  readonly why?: string;
}

export interface SeenPackage {
  readonly installed: InstalledPackage | null;
  /** True when somebody has told the manager to leave the package as it is. */
  readonly isHeld: boolean;
  /** Null when the index was not asked. */
  readonly offer: PackageOffer | null;
  /** True when an apply refreshes the index before it goes by it. */
  readonly isIndexOld: boolean;
  /** Why the index could not be refreshed; null when it could, or was not to be. */
  readonly staleBecause: string | null;
  /** What a removal would bring about besides; null unless a removal was asked for. */
  readonly removal: PackageRemoval | null;
}

/** What goes along with a package, and what would come in its place; or why the manager would not remove it. */
export type PackageRemoval =
  | { readonly takes: readonly string[]; readonly brings: readonly string[] }
  | { readonly refusal: CommandRefusal };

/** What the machine says of one package, or why it says nothing. */
export type PackageHave = SeenPackage | { readonly refusal: CommandRefusal };

/** What is particular to one manager. */
export interface IndexedManager {
  readonly family: Family;
  /** How to end what `isHeld` tells of. */
  readonly unhold: (name: string) => string;
  /** True when a version is what a body asks for. */
  readonly matches: (asked: string, version: string) => boolean;
  readonly install: (want: PackageBody, version: string | null, installed: InstalledPackage | null) => readonly Step[];
  readonly remove: (last: PackageBody, installed: InstalledPackage) => readonly Step[];
}

export const isSeen = (have: PackageHave): have is SeenPackage => !('refusal' in have);

/** True when the index has to be asked: what is installed does not answer for itself. */
export function needsIndex(
  want: PackageBody,
  installed: InstalledPackage | null,
  { matches }: Pick<IndexedManager, 'matches'>,
): boolean {
  const asked = wantedVersion(want);
  return asked === null || installed === null || !hasVersion(installed, (version) => matches(asked, version));
}

/** True when the index has no answer, so that a newer one may. */
export function isUnanswered(
  want: PackageBody,
  offer: PackageOffer,
  { matches }: Pick<IndexedManager, 'matches'>,
): boolean {
  const asked = wantedVersion(want);
  return asked === null ? offer.newest === null : !offer.versions.some((version) => matches(asked, version));
}

/** True when a version that is there is what is looked for. */
export const hasVersion = ({ version, others = [] }: InstalledPackage, is: (version: string) => boolean): boolean =>
  [version, ...others].some(is);
