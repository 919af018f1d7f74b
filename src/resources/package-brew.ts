/** `package-brew`: a formula or a cask of Homebrew on macOS. */
import {
  type Command,
  type CommandRefusal,
  type CommandResult,
  commandFailure,
  exitedWith,
  lastLines,
} from './command.js';
import type { Host, RunStep } from './host.js';
import { recordsOf, textOf, textsOf } from './json-answer.js';
import { defineResource, type ReadPurpose } from './kind.js';
import {
  agreedPackage,
  checkPackage,
  ONE_WORD,
  type PackageBody,
  PackageBodySchema,
  wantedVersion,
} from './packages/package-body.js';
import {
  decidePackage,
  decidePackageRemoval,
  type PackageFact,
  type PackageManager,
  packageMemo,
} from './packages/package-decision.js';

const NAME = {
  pattern: /^[A-Za-z0-9][A-Za-z0-9@+._-]*(?:\/[A-Za-z0-9][A-Za-z0-9@+._-]*){0,2}$/,
  described: 'must be the name of a formula or a cask, such as wget, python@3.13 or user/tap/name',
};

const TIMEOUT_SECS = 3600;

interface BrewHave {
  readonly fact: PackageFact;
  /** Null when brew cannot run. */
  readonly brew: Brew | null;
  /** Version that an installation would bring; null when it was not queried. */
  readonly newest: string | null;
}

const step = (brew: Brew | null, verb: string, name: string): RunStep => ({
  do: 'run',
  command: { argv: [...(brew?.argv ?? ['brew']), verb], timeoutSecs: TIMEOUT_SECS, lifetime: 'outlive' },
  items: [name],
});

export const packageBrew = defineResource<PackageBody, BrewHave>({
  kind: 'package-brew',
  family: 'package-brew',
  isListed: true,
  platforms: ['macos'],
  schema: PackageBodySchema,
  check: (body) => checkPackage(body, NAME, ONE_WORD),
  identity: ({ name }) => name,
  requires: () => [],
  agreed: agreedPackage,
  queried: true,
  read,
  exists: ({ fact }) => fact.is !== 'absent',
  plan: (want, have, context) => decidePackage(want, have.fact, context, managerOf(want, have)),
  planRemoval: ({ name }, { fact, brew }) => decidePackageRemoval(fact, [step(brew, 'uninstall', name)]),
  memo: (_want, { fact }) => packageMemo(fact),
  explain: (_host, body, _step, result) => explain(body, result),
});

/** Homebrew has only the newest version of a formula; older versions are separate formulae such as `node@20`. */
const managerOf = ({ name }: PackageBody, { brew, newest }: BrewHave): PackageManager => {
  const onlyIfNewest = (verb: string, version: string): readonly RunStep[] | CommandRefusal =>
    newest !== null && isSameBrewVersion(newest, version)
      ? [step(brew, verb, name)]
      : otherVersion(name, version, newest);
  return {
    isSameVersion: isSameBrewVersion,
    install: (version) => (version === null ? [step(brew, 'install', name)] : onlyIfNewest('install', version)),
    upgrade: () => [step(brew, 'upgrade', name)],
    change: (_from, to) => onlyIfNewest('upgrade', to),
    unpin: `brew unpin ${name}`,
  };
};

const unknown = (name: string): CommandRefusal => ({
  code: 'package_unknown',
  message: `brew has neither a formula nor a cask ${name}`,
});

function otherVersion(name: string, version: string, newest: string | null): CommandRefusal {
  if (newest === null) return unknown(name);
  const message = `brew cannot install ${name} in version ${version}: it only has ${newest}; look for a formula such as ${name}@${version.split('.')[0]}, or leave the version out`;
  return { code: 'package_version_unknown', message };
}

async function read(host: Host, wants: readonly PackageBody[], purpose: ReadPurpose): Promise<readonly BrewHave[]> {
  const unreadable = (refusal: CommandRefusal): readonly BrewHave[] =>
    wants.map(() => ({ fact: { is: 'unreadable', refusal }, brew: null, newest: null }));
  const brew = await findBrew(host);
  if ('code' in brew) return unreadable(brew);
  const isLatestWanted = wants.some((want) => wantedVersion(want) === null);
  const stale = purpose === 'apply' && isLatestWanted ? await refresh(host, brew) : null;
  const command: Command = { argv: [...brew.argv, 'info', '--json=v2', '--installed'], timeoutSecs: 300 };
  const result = await host.run(command);
  const installed = exitedWith(result, 0) ? parseBrewInfo(result.stdout) : null;
  if (installed === null) return unreadable(refusalOf(result));
  // If a formula and a cask share a name, brew takes the formula.
  const byName = new Map([...installed].reverse().flatMap((one) => one.names.map((name) => [name, one])));
  const offered = await newestOf(
    host,
    brew,
    purpose === 'removal' ? [] : wants.filter(({ name }) => !byName.has(name)),
  );
  return wants.map((want): BrewHave => {
    const found = byName.get(want.name);
    if (found && stale && wantedVersion(want) === null)
      return { fact: { is: 'unreadable', refusal: stale }, brew, newest: null };
    const newest = found?.newest ?? offered.get(want.name) ?? null;
    return { fact: found ? factOf(found) : { is: 'absent', newest }, brew, newest };
  });
}

function factOf({ installed, newest, isOutdated, isPinned }: BrewPackage): PackageFact {
  const version = installed.at(-1);
  if (version === undefined) return { is: 'absent', newest };
  return { is: 'installed', version, newer: isOutdated ? newest : null, isPinned };
}

/** Queries the newest versions of missing packages with a wanted version. One unknown name fails the query, so then each runs alone. */
async function newestOf(host: Host, brew: Brew, wants: readonly PackageBody[]): Promise<ReadonlyMap<string, string>> {
  const names = [...new Set(wants.filter((want) => wantedVersion(want) !== null).map(({ name }) => name))];
  if (names.length === 0) return new Map();
  const result = await host.run({ argv: [...brew.argv, 'info', '--json=v2', ...names] });
  const found = exitedWith(result, 0) ? parseBrewInfo(result.stdout) : null;
  if (found !== null) return new Map(found.flatMap((one) => one.names.map((name) => [name, one.newest])));
  const alone = new Map<string, string>();
  if (names.length === 1) return alone;
  for (const want of wants) {
    for (const [name, newest] of await newestOf(host, brew, [want])) alone.set(name, newest);
  }
  return alone;
}

/** Updates an index that is older than a day; brew records its last update. */
async function refresh(host: Host, brew: Brew): Promise<CommandRefusal | null> {
  const age = await host.run({
    argv: ['/usr/bin/find', `${brew.repository}/.git/FETCH_HEAD`, '-type', 'f', '-mtime', '-1'],
  });
  if (exitedWith(age, 0) && age.stdout.trim() !== '') return null;
  const command: Command = { argv: [...brew.argv, 'update', '--quiet'], timeoutSecs: 600 };
  const result = await host.run(command);
  return exitedWith(result, 0) ? null : refusalOf(result);
}

/** Names brew itself, not the program that starts it. */
const refusalOf = (result: CommandResult): CommandRefusal => commandFailure({ argv: ['brew'] }, result);

function explain({ name }: PackageBody, result: CommandResult): CommandRefusal {
  const text = `${result.stderr}\n${result.stdout}`;
  const [, dependents] =
    /Refusing to uninstall [^\n]*\n\s*because (?:it is|they are) required by ([^\n]*?), which (?:is|are)/.exec(text) ??
    [];
  if (dependents !== undefined) {
    return { code: 'removal_refused', message: `${name} is not removed: ${dependents} needs it` };
  }
  if (/No available formula|No formulae or casks found|No Cask with this name exists/.test(text)) {
    return unknown(name);
  }
  if (/has already locked|Another active Homebrew .* process/.test(text)) {
    return { code: 'package_manager_locked', message: `another brew is at work: ${lastLines(result, 2)}` };
  }
  if (/a terminal is required|a password is required/.test(text)) {
    return {
      code: 'permission_denied',
      message: `the installer of ${name} asks for the password of an administrator, which orch cannot enter; install it by hand`,
    };
  }
  return refusalOf(result);
}

/** Installations on Apple and Intel processors; `repository` holds brew and belongs to the user who installed it. */
const PLACES = [
  { program: '/opt/homebrew/bin/brew', repository: '/opt/homebrew' },
  { program: '/usr/local/bin/brew', repository: '/usr/local/Homebrew' },
] as const;

interface Brew {
  /** Command line before the verb, without colours, hints and automatic updates. */
  readonly argv: readonly [string, ...string[]];
  /** Directory of brew itself. */
  readonly repository: string;
}

/** Sets variables with `env`, because `sudo` passes none on. */
const ENVIRONMENT = [
  '/usr/bin/env',
  'HOMEBREW_NO_AUTO_UPDATE=1',
  'HOMEBREW_NO_ENV_HINTS=1',
  'HOMEBREW_NO_COLOR=1',
  'HOMEBREW_NO_EMOJI=1',
] as const;

const WHO = { argv: ['/usr/bin/id', '-u'] } as const;

async function findBrew(host: Host): Promise<Brew | CommandRefusal> {
  const facts = host.observe(PLACES.map(({ repository }) => ({ path: repository, content: false, entries: false })));
  const at = facts.findIndex(({ type }) => type === 'directory');
  const [place, fact] = [PLACES[at], facts[at]];
  if (place === undefined || fact?.type !== 'directory') {
    const where = PLACES.map(({ repository }) => repository).join(' or ');
    return { code: 'command_missing', message: `Homebrew is not installed on this machine: there is no ${where}` };
  }
  const { program, repository } = place;
  const who = await host.run(WHO);
  if (!exitedWith(who, 0)) return commandFailure(WHO, who);
  if (who.stdout.trim() !== '0') return { argv: [...ENVIRONMENT, program], repository };
  if (fact.uid === 0) {
    const message = `brew refuses to run as root, and ${repository} belongs to root; give it to the user who should run brew (chown -R USER ${repository})`;
    return { code: 'package_manager_broken', message };
  }
  return { argv: ['/usr/bin/sudo', '-n', '-H', '-u', `#${fact.uid}`, '--', ...ENVIRONMENT, program], repository };
}

/** A formula or cask in the output of `brew info --json=v2`. */
interface BrewPackage {
  /** All names of the package. */
  readonly names: readonly string[];
  /** Installed versions with the formula's revision; the last installed one is last. */
  readonly installed: readonly string[];
  /** Version that an installation would bring. */
  readonly newest: string;
  readonly isOutdated: boolean;
  readonly isPinned: boolean;
}

/** Parses the output; null for other text. */
export function parseBrewInfo(text: string): readonly BrewPackage[] | null {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return null;
  }
  const [root] = recordsOf(answer);
  if (root === undefined) return null;
  return [...recordsOf(root.formulae).map(formulaOf), ...recordsOf(root.casks).map(caskOf)];
}

type Fields = Readonly<Record<string, unknown>>;

function formulaOf(formula: Fields): BrewPackage {
  const [versions = {}] = recordsOf(formula.versions);
  const stable = textOf(versions.stable);
  const revision = typeof formula.revision === 'number' && formula.revision > 0 ? `_${formula.revision}` : '';
  return {
    names: namesOf([formula.name, formula.full_name, formula.oldname], [formula.aliases, formula.oldnames]),
    installed: recordsOf(formula.installed).map(({ version }) => textOf(version)),
    newest: `${stable}${revision}`,
    isOutdated: formula.outdated === true,
    isPinned: formula.pinned === true,
  };
}

const caskOf = (cask: Fields): BrewPackage => ({
  names: namesOf([cask.token, cask.full_token], [cask.old_tokens]),
  installed: typeof cask.installed === 'string' ? [cask.installed] : [],
  newest: textOf(cask.version),
  isOutdated: cask.outdated === true,
  isPinned: cask.pinned === true,
});

const namesOf = (single: readonly unknown[], lists: readonly unknown[]): readonly string[] => [
  ...single.filter((name): name is string => typeof name === 'string'),
  ...lists.flatMap(textsOf),
];

/** True when two versions are equal except for Homebrew's revision. */
const isSameBrewVersion = (one: string, other: string): boolean =>
  one === other || withoutRevision(one) === other || one === withoutRevision(other);

const withoutRevision = (version: string): string => version.replace(/_\d+$/, '');
