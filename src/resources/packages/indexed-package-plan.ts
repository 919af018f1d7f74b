/** Decides what a package needs whose manager keeps an index of what it offers: what is there against that. */

import type { CommandRefusal, Decision, FieldChange, PlanContext } from '../kind.js';
import {
  hasVersion,
  type IndexedManager,
  type InstalledPackage,
  isSeen,
  type PackageHave,
  type PackageOffer,
  type SeenPackage,
} from './indexed-package.js';
import { type PackageBody, wantedVersion } from './package-body.js';

/** What to remember: the version that was left, for drift. */
export const indexedMemo = (have: PackageHave): string | null =>
  isSeen(have) && have.installed?.fault === null ? have.installed.version : null;

export function planIndexed(
  want: PackageBody,
  have: PackageHave,
  context: PlanContext,
  manager: IndexedManager,
): Decision {
  if (!isSeen(have)) return { action: 'fail', ...have.refusal };
  const goal =
    context.purpose === 'drift' ? leftVersion(want, have, context) : versionFor(want, have, context, manager);
  if (!('version' in goal)) return { action: 'fail', ...goal };
  const { installed } = have;
  const changes = differences(installed, goal.version, manager, wantedVersion(want));
  if (installed !== null && changes.length === 0) return { action: 'none' };
  if (have.isHeld) return { action: 'fail', ...heldRefusal(want.name, manager) };
  return {
    action: installed === null ? 'create' : 'update',
    changes,
    steps: manager.install(want, goal.version, installed),
    ...(goal.reason === undefined ? {} : { reason: goal.reason }),
  };
}

export function planIndexedRemoval(
  last: PackageBody,
  have: PackageHave,
  context: PlanContext,
  manager: IndexedManager,
): Decision {
  if (!isSeen(have)) return { action: 'fail', ...have.refusal };
  const { installed, isHeld, removal } = have;
  if (installed === null) return { action: 'none' };
  if (isHeld) return { action: 'fail', ...heldRefusal(last.name, manager) };
  if (removal !== null && 'refusal' in removal) return { action: 'fail', ...removal.refusal };
  const takes = removal?.takes.filter((name) => !context.removes(manager.family, name)) ?? [];
  const message = sideEffects(last.name, takes, removal?.brings ?? []);
  if (message !== null) return { action: 'fail', code: 'removal_refused', message };
  return { action: 'remove', changes: [], steps: manager.remove(last, installed) };
}

/** The version to be there; null when it is not known before the index has been refreshed. */
type Goal = { readonly version: string | null; readonly reason?: string } | CommandRefusal;

/** Drift goes by what the apply has left, not by what has been published since. */
function leftVersion(want: PackageBody, { installed }: SeenPackage, { memo }: PlanContext): Goal {
  return { version: wantedVersion(want) ?? memo ?? installed?.version ?? null };
}

function versionFor(want: PackageBody, have: SeenPackage, context: PlanContext, manager: IndexedManager): Goal {
  const { installed, offer } = have;
  const asked = wantedVersion(want);
  if (offer === null) return { version: asked ?? installed?.version ?? null };
  const found = asked === null ? offer.newest : (offer.versions.find((one) => manager.matches(asked, one)) ?? null);
  const stale = have.staleBecause === null ? {} : { reason: notRefreshed(have.staleBecause) };
  if (found !== null) return { version: found, ...stale };
  // What was installed from elsewhere is the newest that there is.
  if (asked === null && installed !== null) return { version: installed.version, ...stale };
  if (context.purpose === 'plan' && (context.mayAppear || have.isIndexOld)) {
    return { version: asked, reason: notOffered(want, offer) };
  }
  return unknown(want, offer, have);
}

/** What the machine's index lacks. An apply may still find it, when its refresh or what comes before brings it. */
function notOffered({ name, version }: PackageBody, { newest, versions }: PackageOffer): string {
  const lacks =
    newest === null || version == null
      ? `no index on this machine has a package ${name}`
      : `no index on this machine has ${name} in version ${version}, only in ${versions.slice(0, MAX_OFFERED).join(', ')}`;
  return `${lacks}; an apply refreshes the index first, and fails if that brings none`;
}

/** One line, because it also stands in reasons. */
const notRefreshed = (why: string): string =>
  `the index of this machine could not be refreshed: ${why.split('\n', 1)[0] ?? ''}`;

const MAX_OFFERED = 12;

function unknown({ name, version }: PackageBody, offer: PackageOffer, { staleBecause }: SeenPackage): CommandRefusal {
  const more = staleBecause === null ? '' : `; ${notRefreshed(staleBecause)}`;
  if (offer.versions.length === 0 || offer.newest === null) {
    const why = offer.why ?? 'is not in the index of this machine; check the name, or declare its repository before';
    return { code: 'package_unknown', message: `${name} ${why}${more}` };
  }
  const offered = offer.versions.slice(0, MAX_OFFERED).join(', ');
  const rest = offer.versions.length > MAX_OFFERED ? ` and ${offer.versions.length - MAX_OFFERED} older` : '';
  const message = `${name} is not offered in version ${version}, only in ${offered}${rest}${more}`;
  return { code: 'package_version_unknown', message };
}

function differences(
  installed: InstalledPackage | null,
  version: string | null,
  { matches }: IndexedManager,
  asked: string | null,
): readonly FieldChange[] {
  if (installed === null) return version === null ? [] : [{ field: 'version', before: null, after: version }];
  const isThere = (one: string) => one === version || (asked !== null && matches(asked, one));
  const changes: FieldChange[] = [];
  if (version !== null && !hasVersion(installed, isThere)) {
    changes.push({ field: 'version', before: installed.version, after: version });
  }
  if (installed.fault !== null) changes.push({ field: 'state', before: installed.fault, after: 'installed' });
  return changes;
}

const heldRefusal = (name: string, { unhold }: IndexedManager): CommandRefusal => ({
  code: 'package_held',
  message: `${name} is held on this machine, so it is left as it is; end that with: ${unhold(name)}`,
});

function sideEffects(name: string, takes: readonly string[], brings: readonly string[]): string | null {
  if (takes.length > 0) {
    const those = takes.length === 1 ? 'that' : 'those';
    return `${name} is not removed, because ${takes.join(', ')} would go with it; remove ${those} first, or keep ${name}`;
  }
  if (brings.length === 0) return null;
  return `${name} is not removed, because ${brings.join(', ')} would be installed in its place; declare it, or keep ${name}`;
}
