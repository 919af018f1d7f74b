/** `package-dnf`: a package of Fedora and its kin, installed in a version or in the newest that dnf offers. */

import type { Host, RunStep } from './host.js';
import { defineResource, type ReadPurpose } from './kind.js';
import { dnfChange } from './packages/dnf-command.js';
import { explainDnf, judgeDnf } from './packages/dnf-explain.js';
import { dnfIndex } from './packages/dnf-index.js';
import { rpmRemovalsOf } from './packages/dnf-removal.js';
import {
  type IndexedManager,
  type InstalledPackage,
  isSeen,
  needsIndex,
  type PackageHave,
  type PackageOffer,
} from './packages/indexed-package.js';
import { indexedMemo, planIndexed, planIndexedRemoval } from './packages/indexed-package-plan.js';
import { checkPackage, type PackageBody, PackageBodySchema } from './packages/package-body.js';
import { askIndex } from './packages/package-index.js';
import { askRpm, rpmArchitecture, rpmName, rpmVersions } from './packages/rpm-installed.js';
import { compareRpmVersions, isRpmVersion } from './packages/rpm-version.js';

const NAME = {
  pattern: /^[A-Za-z0-9_][A-Za-z0-9._+-]*$/,
  described: 'must be a package name such as "nginx", with an architecture such as "glibc.i686" if need be',
};
const VERSION = {
  pattern: /^(?:\d+:)?[A-Za-z0-9._+~^]+(?:-[A-Za-z0-9._+~^]+)?$/,
  described: 'must be a version such as "1.24", "1.24-1.el9" or "2:1.24-1.el9"',
};

const INSTALL = dnfChange('install');
const REMOVE = dnfChange('remove');

const DNF: IndexedManager = {
  family: 'package-dnf',
  unhold: (name) => `dnf versionlock delete ${name}`,
  matches: isRpmVersion,
  install: ({ name }, version): readonly RunStep[] => {
    const architecture = rpmArchitecture(name);
    const exact = version === null ? '' : `-${version}`;
    const item = `${rpmName(name)}${exact}${architecture === null ? '' : `.${architecture}`}`;
    return [{ do: 'run', command: INSTALL, items: [item] }];
  },
  remove: ({ name }): readonly RunStep[] => [{ do: 'run', command: REMOVE, items: [name] }],
};

/** Packages to ask for at once: what dnf says of more would not fit into what the Host keeps of a command. */
const BATCH = 256;

export const packageDnf = defineResource<PackageBody, PackageHave>({
  kind: 'package-dnf',
  family: 'package-dnf',
  platforms: ['linux'],
  schema: PackageBodySchema,
  check: (body) => checkPackage(body, NAME, VERSION),
  identity: ({ name }) => name,
  requires: () => [],
  batch: BATCH,
  queried: true,
  read,
  exists: (have) => isSeen(have) && have.installed !== null,
  plan: (want, have, context) => planIndexed(want, have, context, DNF),
  planRemoval: (last, have, context) => planIndexedRemoval(last, have, context, DNF),
  memo: (_want, have) => indexedMemo(have),
  explain: (_host, { name }, _step, result) => explainDnf(name, result),
  judge: (host, { name }, step, result) => judgeDnf(host, name, step, result),
});

async function read(host: Host, wants: readonly PackageBody[], purpose: ReadPurpose): Promise<readonly PackageHave[]> {
  const answer = await askRpm(
    host,
    wants.map(({ name }) => name),
  );
  if ('code' in answer) return wants.map(() => ({ refusal: answer }));
  const packages = wants.map((want) => ({
    want,
    installed: installedOf(rpmVersions(want.name, answer.rows, answer.native)),
  }));
  if (purpose === 'removal') return readRemovals(host, packages);
  const open = packages.filter(({ want, installed }) => purpose !== 'drift' && needsIndex(want, installed, DNF));
  if (open.length === 0) return packages.map((one) => ({ ...SEEN, ...one }));
  const index = await askIndex(
    host,
    open.map(({ want }) => want),
    dnfIndex(answer.native),
    { ...DNF, purpose },
  );
  return packages.map((one) => {
    if (!open.includes(one)) return { ...SEEN, ...one };
    if ('code' in index) return { refusal: index };
    return { ...SEEN, ...one, ...index, offer: notOlder(index.offer(one.want.name), one.installed) };
  });
}

const SEEN = { isHeld: false, offer: null, isIndexOld: false, staleBecause: null, removal: null };

function installedOf([version, ...others]: readonly string[]): InstalledPackage | null {
  return version === undefined ? null : { version, others, fault: null };
}

/** What is installed may be newer than all that is offered, and then is the newest. */
function notOlder(offer: PackageOffer, installed: InstalledPackage | null): PackageOffer {
  const { newest } = offer;
  if (newest === null || installed === null || compareRpmVersions(newest, installed.version) > 0) return offer;
  return { ...offer, newest: installed.version };
}

async function readRemovals(
  host: Host,
  packages: readonly { readonly want: PackageBody; readonly installed: InstalledPackage | null }[],
): Promise<readonly PackageHave[]> {
  const there = packages.filter(({ installed }) => installed !== null);
  const removals = await rpmRemovalsOf(
    host,
    there.map(({ want }) => want.name),
  );
  return packages.map((one) => ({ ...SEEN, ...one, removal: removals[there.indexOf(one)] ?? null }));
}
