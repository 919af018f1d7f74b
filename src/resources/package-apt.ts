/** `package-apt`: a package of Debian and its derivatives, in one version or in the newest that apt offers. */
import { type Command, commandFailure, exitedWith } from './command.js';
import type { Host, Step } from './host.js';
import type { Decision } from './kind.js';
import { explainApt, judgeApt } from './packages/apt-explain.js';
import { aptIndex } from './packages/apt-index.js';
import {
  architectureOf,
  askDpkg,
  formatOf,
  isToReinstall,
  packagesOf,
  plainName,
  unanswered,
} from './packages/apt-installed.js';
import { defineIndexedPackage, type PackageHave, type PackageRemoval } from './packages/indexed-package.js';
import { wantedVersion } from './packages/package-body.js';
import { DEB, fileStep } from './packages/package-file.js';

/**
 * Answers every question in advance: configured files are kept, new ones come as their maintainer ships them. needrestart would
 * restart services by itself, and the agent with them.
 */
const ENVIRONMENT = {
  DEBIAN_FRONTEND: 'noninteractive',
  APT_LISTCHANGES_FRONTEND: 'none',
  UCF_FORCE_CONFFOLD: '1',
  NEEDRESTART_SUSPEND: '1',
};

const WAITING = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Dpkg::Use-Pty=0'] as const;

/** Keeps packages that are no longer needed, and configuration files, whatever the settings of the machine say. */
const KEEPING = ['-o', 'APT::Get::AutomaticRemove=false', '-o', 'APT::Get::Purge=false'] as const;

const longRunning = (...argv: readonly [string, ...string[]]): Command => ({
  argv,
  env: ENVIRONMENT,
  timeoutSecs: 3600,
  lifetime: 'outlive',
});

/** The settings of the machine decide about recommended packages; no package may be removed for another. */
const INSTALL = longRunning(
  ...(['apt-get', 'install', '-y', '-q', '--no-remove', '--allow-downgrades', ...WAITING] as const),
  ...['-o', 'Dpkg::Options::=--force-confdef', '-o', 'Dpkg::Options::=--force-confold'],
);
const REINSTALL: Command = { ...INSTALL, argv: [...INSTALL.argv, '--reinstall'] };
const REMOVE = longRunning('apt-get', 'remove', '-y', '-q', ...WAITING, ...KEEPING);

/** Removes packages with their configuration files, also of packages that are removed already. */
const PURGE = longRunning('apt-get', 'purge', '-y', '-q', ...WAITING, '-o', 'APT::Get::AutomaticRemove=false');

const HOLD: Command = { argv: ['apt-mark', 'hold', '-q'] };
const UNHOLD: Command = { argv: ['apt-mark', 'unhold', '-q'] };
const MARK_MANUAL: Command = { argv: ['apt-mark', 'manual', '-q'] };

export const packageApt = defineIndexedPackage({
  kind: 'package-apt',
  name: {
    pattern: /^[A-Za-z0-9][A-Za-z0-9+._-]*[A-Za-z0-9+._](?::[a-z0-9][a-z0-9-]*)?$/,
    described:
      'must be a package name such as "nginx", with an architecture such as "libc6:i386" if need be; its version is the key "version"',
  },
  version: {
    pattern: /^[A-Za-z0-9][A-Za-z0-9.+:~-]*$/,
    described: 'must be the whole version as "apt-cache policy" shows it, such as "1:2.4-1"',
  },
  unhold: (name) => `apt-mark unhold ${name}`,
  holdStep: (name, isHeld) => ({ do: 'run', command: isHeld ? HOLD : UNHOLD, items: [name] }),
  matches: (asked, version) => asked === version,
  install: ({ name }, version, installed) => {
    const command = installed?.version === version && installed && isToReinstall(installed) ? REINSTALL : INSTALL;
    return [{ do: 'run', command, items: [version === null ? name : `${name}=${version}`] }];
  },
  installFile: (want, file, installed) => {
    const version = wantedVersion(want);
    const wanted = { name: plainName(want.name), architecture: architectureOf(want.name), version, file };
    return [fileStep(DEB, wanted, installed && isToReinstall(installed) ? REINSTALL : INSTALL)];
  },
  remove: (name) => [{ do: 'run', command: REMOVE, items: [name] }],
  keep: (name) => [{ do: 'run', command: MARK_MANUAL, items: [name] }],
  askInstalled: askDpkg,
  thingsOf: packagesOf,
  conflictsOf,
  index: aptIndex,
  removals: { removesNothingElse, removalOf },
  explain: explainApt,
  judge: judgeApt,
});

/** Turns the removal of a package into one with its configuration files. */
export function purging(name: string, have: PackageHave, removal: Decision): Decision {
  const purge: Step = { do: 'run', command: PURGE, items: [name] };
  if (removal.action === 'remove') return { ...removal, steps: [purge] };
  if (removal.action !== 'none' || 'refusal' in have || have.isConfigured !== true) return removal;
  return { action: 'remove', changes: [], steps: [purge], reason: 'its configuration files are still there' };
}

const simulation = (names: readonly string[]): Command => ({
  argv: ['apt-get', 'remove', '-s', '-q', ...KEEPING, ...names],
});

const installation = (items: readonly string[]): Command => ({
  argv: ['apt-get', 'install', '-s', '-q', '--allow-downgrades', ...items],
});

/** Returns what apt would remove for these packages. One that cannot be installed keeps apt from answering for the others. */
async function conflictsOf(
  host: Host,
  wants: readonly (readonly [string, string | null])[],
): Promise<readonly string[]> {
  const items = wants.map(([name, version]) => (version === null ? name : `${name}=${version}`));
  const result = await host.run(installation(items));
  if (exitedWith(result, 0)) return parseSimulation(result.stdout).removed.flatMap((name) => [name, plainName(name)]);
  if (wants.length === 1) return [];
  const alone: string[] = [];
  for (const want of wants) alone.push(...(await conflictsOf(host, [want])));
  return alone;
}

const NEEDS = formatOf('Package', 'Provides', 'Pre-Depends', 'Depends');

const showNeeds = (names: readonly string[]): Command => ({
  argv: ['dpkg-query', '--show', NEEDS, ...new Set(names.map(plainName))],
});

async function removesNothingElse(host: Host, names: readonly string[]): Promise<boolean> {
  const needs = await host.run(showNeeds(names));
  if (unanswered(showNeeds([]), needs, 0) !== null || needEachOther(needs.stdout)) return false;
  const result = await host.run(simulation(names));
  if (!exitedWith(result, 0)) return false;
  const { removed, installed } = parseSimulation(result.stdout);
  return installed.length === 0 && removed.every((name) => names.includes(name));
}

async function removalOf(host: Host, name: string): Promise<PackageRemoval> {
  const command = simulation([name]);
  const result = await host.run(command);
  const refusal = unanswered(command, result, 0);
  if (refusal !== null) return { refusal: commandFailure(command, result) };
  const { removed, installed } = parseSimulation(result.stdout);
  return { removes: removed.filter((one) => one !== name && one !== plainName(name)), installs: installed };
}

/** Returns names as apt prints them, with a foreign architecture. */
function parseSimulation(text: string): { readonly removed: string[]; readonly installed: string[] } {
  const removed: string[] = [];
  const installed: string[] = [];
  for (const line of text.split('\n')) {
    const [, verb, name] = /^(Remv|Purg|Inst) (\S+)/.exec(line) ?? [];
    if (name !== undefined) (verb === 'Inst' ? installed : removed).push(name);
  }
  return { removed: removed.sort(), installed: installed.sort() };
}

/** True when one of the packages may need another; alternatives count. */
function needEachOther(text: string): boolean {
  const packages = text.split('\n').flatMap((line) => {
    const [name, provides, needs] = line.split('|').length >= 3 ? splitNeeds(line) : [];
    return name === undefined ? [] : [{ name, gives: [name, ...namesIn(provides ?? '')], needs: namesIn(needs ?? '') }];
  });
  return packages.some(({ name, needs }) =>
    packages.some((other) => other.name !== name && other.gives.some((given) => needs.includes(given))),
  );
}

/** Splits a line; the dependency field may contain the separator between alternatives. */
function splitNeeds(line: string): readonly string[] {
  const [name = '', provides = '', ...needs] = line.split('|');
  return [name, provides, needs.join('|')];
}

const namesIn = (relation: string): readonly string[] =>
  relation.split(/[,|]/).flatMap((one) => /^\s*([^\s:(]+)/.exec(one)?.[1] ?? []);
