/** `package-apt`: a package of Debian and its kin, installed in a version or in the newest that apt offers. */

import type { Command } from './command.js';
import type { Host, RunStep } from './host.js';
import { defineResource, type ReadPurpose } from './kind.js';
import { explainApt, judgeApt } from './packages/apt-explain.js';
import { aptIndex } from './packages/apt-index.js';
import { askDpkg, type DpkgPackage, installedAs, isToReinstall } from './packages/apt-installed.js';
import { KEEPING, removalsOf } from './packages/apt-removal.js';
import { type IndexedManager, isSeen, needsIndex, type PackageHave } from './packages/indexed-package.js';
import { indexedMemo, planIndexed, planIndexedRemoval } from './packages/indexed-package-plan.js';
import { checkPackage, type PackageBody, PackageBodySchema } from './packages/package-body.js';
import { askIndex } from './packages/package-index.js';

const NAME = {
  pattern: /^[A-Za-z0-9][A-Za-z0-9+._-]*[A-Za-z0-9+._](?::[a-z0-9][a-z0-9-]*)?$/,
  described: 'must be a package name such as "nginx", with an architecture such as "libc6:i386" if need be',
};
const VERSION = {
  pattern: /^[A-Za-z0-9][A-Za-z0-9.+:~-]*$/,
  described: 'must be the whole version as "apt-cache policy" shows it, such as "1:2.4-1"',
};

/** Nobody answers questions: what has been configured is kept, and what has not is as its maintainer ships it. */
const ENVIRONMENT = { DEBIAN_FRONTEND: 'noninteractive', APT_LISTCHANGES_FRONTEND: 'none', UCF_FORCE_CONFFOLD: '1' };

const WAITING = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Dpkg::Use-Pty=0'] as const;

const longRunning = (...argv: readonly [string, ...string[]]): Command => ({
  argv,
  env: ENVIRONMENT,
  timeoutSecs: 3600,
  lifetime: 'outlive',
});

/** Whether recommended packages come along is for the settings of the machine; that others are removed is for nobody. */
const INSTALL = longRunning(
  ...(['apt-get', 'install', '-y', '-q', '--no-remove', '--allow-downgrades', ...WAITING] as const),
  ...['-o', 'Dpkg::Options::=--force-confdef', '-o', 'Dpkg::Options::=--force-confold'],
);
const REINSTALL: Command = { ...INSTALL, argv: [...INSTALL.argv, '--reinstall'] };
const REMOVE = longRunning('apt-get', 'remove', '-y', '-q', ...WAITING, ...KEEPING);

const APT: IndexedManager = {
  family: 'package-apt',
  unhold: (name) => `apt-mark unhold ${name}`,
  matches: (asked, version) => asked === version,
  install: ({ name }, version, installed): readonly RunStep[] => {
    const command = installed?.version === version && installed && isToReinstall(installed) ? REINSTALL : INSTALL;
    return [{ do: 'run', command, items: [version === null ? name : `${name}=${version}`] }];
  },
  remove: ({ name }): readonly RunStep[] => [{ do: 'run', command: REMOVE, items: [name] }],
};

/** Packages to ask for at once: what apt says of more would not fit into what the Host keeps of a command. */
const BATCH = 256;

export const packageApt = defineResource<PackageBody, PackageHave>({
  kind: 'package-apt',
  family: 'package-apt',
  platforms: ['linux'],
  schema: PackageBodySchema,
  check: (body) => checkPackage(body, NAME, VERSION),
  identity: ({ name }) => name,
  requires: () => [],
  batch: BATCH,
  queried: true,
  read,
  exists: (have) => isSeen(have) && have.installed !== null,
  plan: (want, have, context) => planIndexed(want, have, context, APT),
  planRemoval: (last, have, context) => planIndexedRemoval(last, have, context, APT),
  memo: (_want, have) => indexedMemo(have),
  explain: (_host, { name }, step, result) => explainApt(name, step, result),
  judge: (host, { name }, step, result) => judgeApt(host, name, step, result),
});

async function read(host: Host, wants: readonly PackageBody[], purpose: ReadPurpose): Promise<readonly PackageHave[]> {
  const answer = await askDpkg(
    host,
    wants.map(({ name }) => name),
  );
  if ('code' in answer) return wants.map(() => ({ refusal: answer }));
  const packages = wants.map((want) => ({ want, ...installedAs(want.name, answer) }));
  if (purpose === 'removal') return readRemovals(host, packages);
  const open = packages.filter(({ want, installed }) => purpose !== 'drift' && needsIndex(want, installed, APT));
  if (open.length === 0) return packages.map((one) => ({ ...SEEN, ...one }));
  const index = await askIndex(
    host,
    open.map(({ want }) => want),
    aptIndex(answer.native),
    { ...APT, purpose },
  );
  return packages.map((one) => {
    if (!open.includes(one)) return { ...SEEN, ...one };
    return 'code' in index ? { refusal: index } : { ...SEEN, ...one, ...index, offer: index.offer(one.want.name) };
  });
}

const SEEN = { offer: null, isIndexOld: false, staleBecause: null, removal: null };

async function readRemovals(
  host: Host,
  packages: readonly (DpkgPackage & { readonly want: PackageBody })[],
): Promise<readonly PackageHave[]> {
  const there = packages.filter(({ installed }) => installed !== null);
  const removals = await removalsOf(
    host,
    there.map(({ want }) => want.name),
  );
  return packages.map((one) => ({ ...SEEN, ...one, removal: removals[there.indexOf(one)] ?? null }));
}
