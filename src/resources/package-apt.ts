/** `package-apt`: a package of Debian and its kin, installed in a version or in the newest that apt offers. */
import { explainApt, isDoneByApt } from './apt-explain.js';
import { isAptIndexOld, refreshAptIndex } from './apt-index.js';
import { askDpkg, type DpkgAnswer, type DpkgPackage, installedAs, isToReinstall, unanswered } from './apt-installed.js';
import { askPolicy, offeredAs, parsePolicy } from './apt-offer.js';
import { KEEPING, removalsOf } from './apt-removal.js';
import type { Command } from './command.js';
import type { Host, RunStep } from './host.js';
import {
  type IndexedManager,
  indexedMemo,
  isSeen,
  isUnanswered,
  needsIndex,
  type PackageHave,
  type PackageOffer,
  planIndexed,
  planIndexedRemoval,
} from './indexed-package.js';
import { type CommandRefusal, defineResource, type ReadPurpose } from './kind.js';
import { checkPackage, type PackageBody, PackageBodySchema } from './package-body.js';

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
  isDone: (host, { name }, step) => isDoneByApt(host, name, step),
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
  const index = await askIndex(
    host,
    open.map(({ want }) => want),
    answer,
    purpose,
  );
  return packages.map((one) => {
    if (!open.includes(one)) return { ...SEEN, ...one };
    if ('code' in index) return { refusal: index };
    const { isOld: isIndexOld, staleBecause } = index;
    return { ...SEEN, ...one, offer: index.offer(one.want.name), isIndexOld, staleBecause };
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

interface Index {
  readonly isOld: boolean;
  readonly staleBecause: string | null;
  readonly offer: (name: string) => PackageOffer;
}

/** Refreshes the index, in an apply, when it is older than a day or has no answer. */
async function askIndex(
  host: Host,
  open: readonly PackageBody[],
  { native }: DpkgAnswer,
  purpose: ReadPurpose,
): Promise<Index | CommandRefusal> {
  if (open.length === 0) return { isOld: false, staleBecause: null, offer: () => ({ newest: null, versions: [] }) };
  const isOld = await isAptIndexOld(host);
  const mayRefresh = purpose === 'apply';
  const early = mayRefresh && isOld ? await refreshAptIndex(host) : null;
  const offers = await offersOf(host, open);
  if ('code' in offers) return offers;
  const offer = (name: string) => offeredAs(name, offers, native);
  const isAnswered = !open.some((want) => isUnanswered(want, offer(want.name), APT));
  if (!mayRefresh || isOld || isAnswered) return { isOld, staleBecause: early, offer };
  const staleBecause = await refreshAptIndex(host);
  const again = await offersOf(host, open);
  return 'code' in again ? again : { isOld, staleBecause, offer: (name) => offeredAs(name, again, native) };
}

async function offersOf(
  host: Host,
  open: readonly PackageBody[],
): Promise<ReadonlyMap<string, PackageOffer> | CommandRefusal> {
  const command = askPolicy(open.map(({ name }) => name));
  const result = await host.run(command);
  return unanswered(command, result, 0) ?? parsePolicy(result.stdout);
}
