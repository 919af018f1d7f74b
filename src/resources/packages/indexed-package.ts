/** Packages of a manager that keeps an index of what it offers (apt, dnf): reads, refreshes the index, and plans. */
import type { Command, CommandRefusal, CommandResult } from '../command.js';
import { nameOfSource, wantedFile } from '../file-content.js';
import type { Host, RunStep, SourceFile, Step } from '../host.js';
import {
  type Decision,
  defineResource,
  type FieldChange,
  type NeededChange,
  type Obstacle,
  type PlanContext,
  type ReadPurpose,
  type ResourceKind,
  type StepVerdict,
} from '../kind.js';
import {
  agreedPackage,
  checkPackage,
  IndexedPackageSchema,
  isFromFile,
  type PackageBody,
  type PackageText,
  takesAnyVersion,
  wantedVersion,
} from './package-body.js';

/** The parts in which the managers differ. */
export interface IndexedManager<Answer extends InstalledAnswer = InstalledAnswer> {
  /** Both the kind and its family. */
  readonly kind: `package-${string}`;
  readonly name: PackageText;
  readonly version: PackageText;
  /** Returns the command line that ends the hold of a package. */
  unhold(name: string): string;
  /** Returns the step that has the manager leave an installed package as it is, or ends that. */
  holdStep(name: string, isHeld: boolean): Step;
  /** True when `version` satisfies the version that a body asks for. */
  matches(asked: string, version: string): boolean;
  install(want: PackageBody, version: string | null, installed: InstalledPackage | null): readonly Step[];
  /** Installs the package of a file, and refuses one that is not the wanted one. */
  installFile(want: PackageBody, file: SourceFile, installed: InstalledPackage | null): readonly Step[];
  remove(name: string): readonly Step[];
  /** Marks an installed package as wanted for itself, because managers remove packages which no other one needs. */
  keep(name: string): readonly Step[];
  thingsOf?(host: Host, names: readonly string[]): Promise<readonly (string | null)[]>;
  /** Returns the names of installed packages that the manager would remove for these, each a name and a wanted version or null. */
  conflictsOf?(host: Host, wants: readonly (readonly [string, string | null])[]): Promise<readonly string[]>;
  /** Queries the installed packages, all names at once; for a removal, not why they are installed. */
  askInstalled(host: Host, names: readonly string[], purpose: ReadPurpose): Promise<Answer | CommandRefusal>;
  index(installed: Answer): PackageIndex;
  /** Corrects an offer by what is installed. */
  corrected?(offer: PackageOffer, installed: InstalledPackage | null): PackageOffer;
  readonly removals: RemovalQueries;
  explain(name: string, step: RunStep, result: CommandResult): CommandRefusal;
  judge(host: Host, name: string, step: RunStep, result: CommandResult): Promise<StepVerdict>;
}

/** An installed package, whole or not. */
export interface InstalledPackage {
  readonly version: string;
  /** Every installed version, for managers that keep several side by side. */
  readonly others?: readonly string[];
  /** The manager's word for a state in which the package does not work, such as `half-configured`; null when it is whole. */
  readonly fault: string | null;
  /** True when the manager may remove it as soon as no other package needs it. */
  readonly isAutomatic?: boolean;
}

/** One wanted package as the manager has it. */
export interface InstalledState {
  readonly installed: InstalledPackage | null;
  /** True when the manager was ordered to leave the package as it is. */
  readonly isHeld: boolean;
  /** True when only its configuration files are there. */
  readonly isConfigured?: boolean;
}

export interface InstalledAnswer {
  /** Why the manager cannot hold packages on this machine; absent where it can. */
  readonly cannotHold?: string;
  /** The architecture of the machine; empty where nothing depends on it. */
  readonly native: string;
  /** Returns the state of a package by the name that a body gives. */
  stateOf(name: string): InstalledState;
}

/** The entry of a package in the index of the machine. */
export interface PackageOffer {
  /** The version that the manager would choose; null when it would choose none. */
  readonly newest: string | null;
  /** Every version that can be installed, newest first. */
  readonly versions: readonly string[];
  /** The reason why there is none, when the manager gives one. */
  readonly why?: string;
}

export const NO_OFFER: PackageOffer = { newest: null, versions: [] };

export interface SeenPackage extends InstalledState, Pick<InstalledAnswer, 'cannotHold'> {
  /** Null when the index was not asked. */
  readonly offer: PackageOffer | null;
  /** True when an apply refreshes the index before it relies on it. */
  readonly isIndexOld: boolean;
  /** Why the index could not be refreshed; null when it was refreshed or did not have to be. */
  readonly staleBecause: string | null;
  /** The side effects of a removal; null unless the read is for a removal. */
  readonly removal: PackageRemoval | null;
}

/** Other packages that a removal removes and installs, or why the manager refuses the removal. */
export type PackageRemoval =
  | { readonly removes: readonly string[]; readonly installs: readonly string[] }
  | { readonly refusal: CommandRefusal };

export const NO_SIDE_EFFECTS: PackageRemoval = { removes: [], installs: [] };

/** The observation of one package, or why there is none. */
export type PackageHave = SeenPackage | Unseen;

interface Unseen {
  readonly refusal: CommandRefusal;
  /** True when the package is known to be installed. */
  readonly isInstalled?: boolean;
}

/** Queries to a package manager about removals, before anything is removed. */
interface RemovalQueries {
  /** True when two commands show that the removal removes no other package. */
  removesNothingElse(host: Host, names: readonly string[]): Promise<boolean>;
  removalOf(host: Host, name: string): Promise<PackageRemoval>;
}

export interface PackageIndex {
  /** Lists the times of the sources, and of what has come into the index within a day, for `readsAsOld`. */
  readonly look: Command;
  /** Returns null when the index is now as new as its sources, else the reason. */
  refresh(host: Host): Promise<string | null>;
  /** Returns what is offered under the name that a body gives. */
  offers(host: Host, names: readonly string[]): Promise<((name: string) => PackageOffer) | CommandRefusal>;
}

export const MINUTES_OF_A_DAY = 1440;

/** Packages per query: the answer for more would not fit into the output that the Host keeps. */
const BATCH = 256;

const isSeen = (have: PackageHave): have is SeenPackage => !('refusal' in have);

/** Defines the resource kind of a manager. */
export const defineIndexedPackage = <Answer extends InstalledAnswer>(
  manager: IndexedManager<Answer>,
): ResourceKind<PackageBody, PackageHave> =>
  defineResource<PackageBody, PackageHave>({
    kind: manager.kind,
    family: manager.kind,
    isListed: true,
    platforms: ['linux'],
    schema: IndexedPackageSchema,
    check: (body) => checkPackage(body, manager.name, manager.version),
    identity: ({ name }) => name,
    requires: () => [],
    agreed: agreedPackage,
    batch: BATCH,
    queried: true,
    ...(manager.thingsOf && { thingsOf: (host, wants) => manager.thingsOf?.(host, namesOf(wants)) ?? [] }),
    obstacles: (host, wants, removals) => obstaclesOf(host, wants, removals, manager),
    read: (host, wants, purpose) => readPackages(host, wants, purpose, manager),
    exists: (have) => (isSeen(have) ? have.installed !== null : have.isInstalled === true),
    plan: (want, have, context) => plan(want, have, context, manager),
    planRemoval: (last, have, context) => planRemoval(last, have, context, manager),
    // The version that the apply left, for drift.
    memo: (_want, have) => (isSeen(have) && have.installed?.fault === null ? have.installed.version : null),
    explain: (_host, { name }, step, result) => manager.explain(name, step, result),
    judge: (host, { name }, step, result) => manager.judge(host, name, step, result),
  });

const UNASKED = { offer: null, isIndexOld: false, staleBecause: null, removal: null };

async function readPackages(
  host: Host,
  wants: readonly PackageBody[],
  purpose: ReadPurpose,
  manager: IndexedManager,
): Promise<readonly PackageHave[]> {
  const answer = await manager.askInstalled(host, namesOf(wants), purpose);
  if ('code' in answer) return wants.map(() => ({ refusal: answer }));
  const { cannotHold } = answer;
  const packages = wants.map((want) => ({
    want,
    state: { ...answer.stateOf(want.name), ...(cannotHold !== undefined && { cannotHold }) },
  }));
  if (purpose === 'removal') {
    const there = packages.filter(({ state }) => state.installed !== null);
    const removals = await removalsOf(host, namesOf(there.map(({ want }) => want)), manager.removals);
    return packages.map((one) => ({ ...UNASKED, ...one.state, removal: removals[there.indexOf(one)] ?? null }));
  }
  const open = packages.filter(({ want, state }) => purpose !== 'drift' && needsIndex(want, state.installed, manager));
  if (open.length === 0) return packages.map(({ state }) => ({ ...UNASKED, ...state }));
  const asked = open.map(({ want }) => want);
  const index = await askIndex(host, asked, manager.index(answer), { purpose, manager });
  return packages.map((one): PackageHave => {
    const { want, state } = one;
    if (!open.includes(one)) return { ...UNASKED, ...state };
    if ('code' in index) return { refusal: index, isInstalled: state.installed !== null };
    const offer = index.offer(want.name);
    const { isIndexOld, staleBecause } = index;
    return {
      ...UNASKED,
      ...state,
      isIndexOld,
      staleBecause,
      offer: manager.corrected?.(offer, state.installed) ?? offer,
    };
  });
}

/** Returns the packages that have to go before the manager can install the wanted ones. */
async function obstaclesOf(
  host: Host,
  wants: readonly NeededChange<PackageBody>[],
  removals: readonly Obstacle[],
  { kind, conflictsOf }: IndexedManager,
): Promise<readonly Obstacle[]> {
  const packages = removals.filter((one) => one.kind === kind);
  if (packages.length === 0 || conflictsOf === undefined) return [];
  // What the package of a file conflicts with is known only from the file.
  const asked = wants.flatMap(({ body }) => (isFromFile(body) ? [] : [[body.name, wantedVersion(body)] as const]));
  if (asked.length === 0) return [];
  const names = new Set(await conflictsOf(host, asked));
  return packages.filter(({ identity }) => names.has(identity));
}

const namesOf = (wants: readonly PackageBody[]): readonly string[] => wants.map(({ name }) => name);

/** Returns removals in the order of the names, all of which are installed; asks for each alone unless all go alone. */
async function removalsOf(
  host: Host,
  names: readonly string[],
  { removesNothingElse, removalOf }: RemovalQueries,
): Promise<readonly PackageRemoval[]> {
  if (names.length > 1 && (await removesNothingElse(host, names))) return names.map(() => NO_SIDE_EFFECTS);
  const alone: PackageRemoval[] = [];
  for (const name of names) alone.push(await removalOf(host, name));
  return alone;
}

/** True when the index has to be asked, because what is installed does not answer for itself. */
function needsIndex(want: PackageBody, installed: InstalledPackage | null, { matches }: IndexedManager): boolean {
  if (takesAnyVersion(want) && installed !== null) return false;
  const asked = wantedVersion(want);
  return asked === null || installed === null || !hasVersion(installed, (version) => matches(asked, version));
}

/** True when the index has no answer, so that a newer one may. */
function isUnanswered(want: PackageBody, offer: PackageOffer, { matches }: IndexedManager): boolean {
  if (isFromFile(want)) return false;
  const asked = wantedVersion(want);
  return asked === null ? offer.newest === null : !offer.versions.some((version) => matches(asked, version));
}

/** True when one of the installed versions satisfies the predicate. */
const hasVersion = ({ version, others = [] }: InstalledPackage, is: (version: string) => boolean): boolean =>
  [version, ...others].some(is);

interface IndexAnswer {
  readonly isIndexOld: boolean;
  readonly staleBecause: string | null;
  readonly offer: (name: string) => PackageOffer;
}

/** Asks the index; an apply first refreshes one that is older than a day or has no answer for one of the packages. */
async function askIndex(
  host: Host,
  wants: readonly PackageBody[],
  index: PackageIndex,
  { purpose, manager }: { readonly purpose: ReadPurpose; readonly manager: IndexedManager },
): Promise<IndexAnswer | CommandRefusal> {
  const names = namesOf(wants);
  const isIndexOld = readsAsOld((await host.run(index.look)).stdout);
  const mayRefresh = purpose === 'apply';
  const early = mayRefresh && isIndexOld ? await index.refresh(host) : null;
  const offer = await index.offers(host, names);
  if (typeof offer !== 'function') return offer;
  const isAnswered = !wants.some((want) => isUnanswered(want, offer(want.name), manager));
  if (!mayRefresh || isIndexOld || isAnswered) return { isIndexOld, staleBecause: early, offer };
  const staleBecause = await index.refresh(host);
  const again = await index.offers(host, names);
  return typeof again === 'function' ? { isIndexOld, staleBecause, offer: again } : again;
}

/** True when nothing has come into the index within a day, or a source has changed since. */
function readsAsOld(text: string): boolean {
  const newest = (what: string) =>
    text
      .split('\n')
      .reduce((most, line) => (line.startsWith(what) ? Math.max(most, Number(line.split(' ')[1])) : most), 0);
  const index = newest('index');
  return index === 0 || index < newest('source');
}

function plan(want: PackageBody, have: PackageHave, context: PlanContext, manager: IndexedManager): Decision {
  if (!isSeen(have)) return context.mayAppear ? unknownYet(have) : { action: 'fail', ...have.refusal };
  const goal =
    context.purpose === 'drift' ? leftVersion(want, have, context) : versionFor(want, have, context, manager);
  if (!('version' in goal)) return { action: 'fail', ...goal };
  const { installed } = have;
  const changes = differences(installed, goal.version, manager, wantedVersion(want));
  const keeping = installed?.isAutomatic === true ? manager.keep(want.name) : [];
  const isInstalled = installed !== null && changes.length === 0;
  if (!isInstalled && have.isHeld && want.hold == null) return { action: 'fail', ...heldRefusal(want.name, manager) };
  const cannotHold = want.hold === true && !have.isHeld ? have.cannotHold : undefined;
  if (cannotHold !== undefined && !context.mayAppear) {
    return { action: 'fail', code: 'command_missing', message: `${want.name} cannot be held: ${cannotHold}` };
  }
  const file = isInstalled ? null : wantedFile(want);
  const install = () =>
    file === null ? manager.install(want, goal.version, installed) : manager.installFile(want, file, installed);
  const hold = holdSteps(want, have.isHeld, isInstalled, manager);
  const steps = [...hold.before, ...(isInstalled ? [] : install()), ...keeping, ...hold.after];
  if (steps.length === 0) return { action: 'none' };
  return {
    action: installed === null ? 'create' : 'update',
    changes: [...changes, ...comesFrom(file), ...(keeping.length === 0 ? [] : [MARKED]), ...hold.changes],
    steps,
    ...(isInstalled || goal.reason === undefined ? {} : { reason: goal.reason }),
  };
}

const comesFrom = (file: SourceFile | null): readonly FieldChange[] =>
  file === null ? [] : [{ field: 'file', before: null, after: nameOfSource(file) }];

/** A package that no other one needs is removed by the manager unless it was asked for itself. */
const MARKED: FieldChange = { field: 'mark', before: 'automatic', after: 'manual' };

interface HoldChange {
  readonly changes: readonly FieldChange[];
  /** Ends a hold before the package is changed. */
  readonly before: readonly Step[];
  readonly after: readonly Step[];
}

/** Plans the hold of a package. A held package that must change is released first, and held again afterwards. */
function holdSteps(
  { name, hold }: PackageBody,
  isHeld: boolean,
  isInstalled: boolean,
  { holdStep }: IndexedManager,
): HoldChange {
  if (hold == null) return { changes: [], before: [], after: [] };
  return {
    changes: hold === isHeld ? [] : [{ field: 'hold', before: String(isHeld), after: String(hold) }],
    before: isHeld && (!hold || !isInstalled) ? [holdStep(name, false)] : [],
    after: hold && (!isHeld || !isInstalled) ? [holdStep(name, true)] : [],
  };
}

/** Plans a package that cannot be looked up before an earlier resource is changed, such as a broken list of sources. */
function unknownYet({ refusal, isInstalled = false }: Unseen): Decision {
  const [why = ''] = refusal.message.split('\n', 1);
  const reason = `it cannot be looked up before the changes above: ${why}`;
  return { action: isInstalled ? 'update' : 'create', changes: [], steps: [], reason };
}

function planRemoval(last: PackageBody, have: PackageHave, context: PlanContext, manager: IndexedManager): Decision {
  if (!isSeen(have)) return { action: 'fail', ...have.refusal };
  const { installed, isHeld, removal } = have;
  if (installed === null) return { action: 'none' };
  const isOwnHold = isHeld && last.hold === true;
  if (isHeld && !isOwnHold) return { action: 'fail', ...heldRefusal(last.name, manager) };
  if (removal !== null && 'refusal' in removal) return { action: 'fail', ...removal.refusal };
  const takes = removal?.removes.filter((name) => !context.removes(manager.kind, name)) ?? [];
  const message = sideEffects(last.name, takes, removal?.installs ?? []);
  if (message !== null) return { action: 'fail', code: 'removal_refused', message };
  const unhold = isOwnHold ? [manager.holdStep(last.name, false)] : [];
  return { action: 'remove', changes: [], steps: [...unhold, ...manager.remove(last.name)] };
}

/** The wanted version; null while it is unknown before a refresh of the index. */
type Goal = { readonly version: string | null; readonly reason?: string } | CommandRefusal;

/** Returns the version that the last apply left; drift ignores versions published since. */
function leftVersion(want: PackageBody, { installed }: SeenPackage, { memo }: PlanContext): Goal {
  if (takesAnyVersion(want)) return { version: installed?.version ?? memo };
  return { version: wantedVersion(want) ?? memo ?? installed?.version ?? null };
}

function versionFor(want: PackageBody, have: SeenPackage, context: PlanContext, manager: IndexedManager): Goal {
  const { installed, offer } = have;
  const asked = wantedVersion(want);
  if (offer === null || isFromFile(want)) return { version: asked ?? installed?.version ?? null };
  const found = asked === null ? offer.newest : (offer.versions.find((one) => manager.matches(asked, one)) ?? null);
  const stale = have.staleBecause === null ? {} : { reason: notRefreshed(have.staleBecause) };
  if (found !== null) return { version: found, ...stale, ...(asked === null ? unsettled(context) : {}) };
  // A package from elsewhere has no newer version in the index.
  if (asked === null && installed !== null) return { version: installed.version, ...stale };
  if (context.purpose === 'plan' && (context.mayAppear || have.isIndexOld)) {
    return { version: asked, reason: context.changesRepositories ? AFTER_REPOSITORIES : notOffered(want, offer) };
  }
  return unknown(want, offer, have);
}

const AFTER_REPOSITORIES =
  'its version is known only once the repositories above are changed; the apply fails if none of them has the package';

/** Returns the reason of a plan for a newest version that may be another one once earlier changes are made. */
const unsettled = ({ changesRepositories }: PlanContext): { readonly reason?: string } =>
  changesRepositories === true
    ? { reason: 'the repositories above, once they are changed, may offer another version' }
    : {};

/** Returns the reason of a plan for a package that the index lacks; the refresh of an apply or an earlier resource may bring it. */
function notOffered({ name, version }: PackageBody, { newest, versions }: PackageOffer): string {
  const lacks =
    newest === null || version == null
      ? `no index on this machine has a package ${name}`
      : `no index on this machine has ${name} in version ${version}, only in ${versions.slice(0, MAX_OFFERED).join(', ')}`;
  return `${lacks}; an apply refreshes the index first, and fails if that brings none`;
}

/** Returns one line, because reasons contain it. */
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
