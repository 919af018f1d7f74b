/** `package-dnf`: a package of Fedora and its derivatives, in one version or in the newest that dnf offers. */

import type { CommandRefusal } from './command.js';
import { type Command, commandFailure, exitedWith, lastLines } from './command.js';
import type { Host } from './host.js';
import type { ReadPurpose } from './kind.js';
import { dnf, dnfChange, dnfFailure, dnfInstalled, explainDnf, judgeDnf } from './packages/dnf-command.js';
import { type DnfHolds, dnfHoldStep, dnfHolds } from './packages/dnf-holds.js';
import {
  defineIndexedPackage,
  type InstalledAnswer,
  type InstalledPackage,
  MINUTES_OF_A_DAY,
  NO_OFFER,
  NO_SIDE_EFFECTS,
  type PackageIndex,
  type PackageOffer,
  type PackageRemoval,
} from './packages/indexed-package.js';
import { wantedVersion } from './packages/package-body.js';
import { fileStep, RPM } from './packages/package-file.js';
import {
  askRpm,
  compareRpmVersions,
  isRpmVersion,
  parseRpmRows,
  rpmArchitecture,
  rpmName,
  rpmPackagesOf,
  rpmVersions,
} from './packages/rpm-installed.js';

const INSTALL = dnfChange('install');
const REMOVE = dnfChange('remove');

export const packageDnf = defineIndexedPackage({
  kind: 'package-dnf',
  name: {
    pattern: /^[A-Za-z0-9_][A-Za-z0-9._+-]*$/,
    described: 'must be a package name such as "nginx", with an architecture such as "glibc.i686" if need be',
  },
  version: {
    pattern: /^(?:\d+:)?[A-Za-z0-9._+~^]+(?:-[A-Za-z0-9._+~^]+)?$/,
    described: 'must be a version such as "1.24", "1.24-1.el9" or "2:1.24-1.el9"',
  },
  unhold: (name) => `dnf versionlock delete ${name}`,
  holdStep: dnfHoldStep,
  matches: isRpmVersion,
  install: ({ name }, version) => [{ do: 'run', command: INSTALL, items: [itemOf(name, version)] }],
  installFile: (want, file) => {
    const { name } = want;
    const wanted = { name: rpmName(name), architecture: rpmArchitecture(name), version: wantedVersion(want), file };
    return [fileStep(RPM, wanted, INSTALL)];
  },
  remove: (name) => [{ do: 'run', command: REMOVE, items: [name] }],
  keep: (name) => [{ do: 'run', command: MARK, items: [name] }],
  askInstalled,
  thingsOf: rpmPackagesOf,
  conflictsOf,
  index: dnfIndex,
  corrected: notOlder,
  removals: { removesNothingElse, removalOf },
  explain: (name, _step, result) => explainDnf(name, result),
  judge: judgeDnf,
});

/** Returns the argument of dnf for a package. */
function itemOf(name: string, version: string | null): string {
  const architecture = rpmArchitecture(name);
  const exact = version === null ? '' : `-${version}`;
  return `${rpmName(name)}${exact}${architecture === null ? '' : `.${architecture}`}`;
}

/** Returns what dnf would remove for these packages, from the table that it shows before it asks. */
async function conflictsOf(
  host: Host,
  wants: readonly (readonly [string, string | null])[],
): Promise<readonly string[]> {
  const items = wants.map(([name, version]) => itemOf(name, version));
  const { stdout } = await host.run({ argv: [...TRIAL, ...items], timeoutSecs: 600 });
  const removing = stdout
    .split('\n')
    .flatMap((line, at, lines) => (/^Removing.*:$/.test(line) ? [lines.slice(at + 1)] : []));
  return removing.flatMap((lines) => {
    const end = lines.findIndex((line) => !line.startsWith(' '));
    return lines.slice(0, end < 0 ? undefined : end).flatMap((line) => {
      const [, name, architecture] = /^ (\S+)\s+(\S+)/.exec(line) ?? [];
      return name === undefined ? [] : [name, `${name}.${architecture}`];
    });
  });
}

const TRIAL = ['dnf', '--assumeno', '-C', '--setopt=exit_on_lock=True', 'install', '--allowerasing'] as const;

interface DnfInstalled extends InstalledAnswer {
  readonly holds: DnfHolds;
}

async function askInstalled(
  host: Host,
  names: readonly string[],
  purpose: ReadPurpose,
): Promise<DnfInstalled | CommandRefusal> {
  const answer = await askRpm(host, names);
  if ('code' in answer) return answer;
  const { rows, native } = answer;
  const automatic = purpose === 'removal' || rows.length === 0 ? NONE : await automaticPackages(host, rows);
  const holds = dnfHolds(host);
  return {
    holds,
    ...(holds.cannotHold !== undefined && { cannotHold: holds.cannotHold }),
    native,
    stateOf: (name) => {
      const [version, ...others] = rpmVersions(name, rows, native);
      const isAutomatic = automatic.has(rpmName(name));
      return {
        isHeld: holds.isHeld(name),
        installed: version === undefined ? null : { version, others, fault: null, isAutomatic },
      };
    },
  };
}

const NONE: ReadonlySet<string> = new Set();

/** Returns the names of the packages that `dnf autoremove` may remove; none if dnf does not say. */
async function automaticPackages(host: Host, rows: readonly { readonly name: string }[]): Promise<ReadonlySet<string>> {
  const names = new Set(rows.map(({ name }) => name));
  const result = await host.run(dnfInstalled('repoquery', '--installed', '--qf', '%{name}|%{reason}\\n', ...names));
  if (!exitedWith(result, 0) || result.truncated) return NONE;
  const reasons = result.stdout.split('\n').map((line) => line.split('|'));
  return new Set(reasons.flatMap(([name = '', reason = '']) => (/dependency/i.test(reason) ? [name] : [])));
}

/** Marks packages as wanted by the user; dnf 5 has another word for that. */
const MARK: Command = {
  argv: [
    'sh',
    '-c',
    'case $(dnf --version 2>/dev/null) in *dnf5*) verb=user ;; *) verb=install ;; esac; exec dnf -y -q -C mark "$verb" "$@"',
    'dnf',
  ],
};

/** Makes the installed version the newest one when it is newer than every offered one. */
function notOlder(offer: PackageOffer, installed: InstalledPackage | null): PackageOffer {
  const { newest } = offer;
  if (newest === null || installed === null || compareRpmVersions(newest, installed.version) > 0) return offer;
  return { ...offer, newest: installed.version };
}

/** dnf updates the times of cached repository files whenever it has checked them. */
const LOOK: Command = {
  argv: [
    'find',
    ...['/etc/yum.repos.d', '/etc/dnf/dnf.conf', '/var/cache/dnf', '/var/cache/libdnf5'],
    ...['-maxdepth', '3', '-type', 'f', '('],
    ...['-path', '/etc/*', '-printf', 'source %T@\\n'],
    ...['-o', '-path', '*/repodata/*', '-mmin', `-${MINUTES_OF_A_DAY}`, '-printf', 'index %T@\\n'],
    ')',
  ],
};

const REFRESH = dnf('-q', 'makecache', '--refresh');

/** Has its own line end, because newer versions of dnf add none. */
const FORMAT = '%{name}|%{evr}|%{arch}\\n';

/** Held packages are offered in other versions too, as a module may declare one. */
const query = (names: readonly string[], { hidesVersions }: DnfHolds): Command => {
  const shown = hidesVersions ? ['--disableplugin=versionlock'] : [];
  return dnf('-q', '-C', ...shown, 'repoquery', '--available', '--qf', FORMAT, ...new Set(names.map(rpmName)));
};

function dnfIndex({ native, holds }: DnfInstalled): PackageIndex {
  return {
    look: LOOK,
    async refresh(host) {
      const result = await host.run(REFRESH);
      return exitedWith(result, 0) ? null : dnfFailure(result).message;
    },
    async offers(host, names) {
      const result = await host.run(query(names, holds));
      if (!exitedWith(result, 0)) {
        // A repository that was never read keeps dnf from answering for the others.
        if (/no cache for/.test(result.stderr)) return () => ({ ...NO_OFFER, why: lacking(result.stderr) });
        return dnfFailure(result);
      }
      if (result.truncated) return { code: 'observe_failed', message: 'dnf says more than orch reads' };
      const rows = parseRpmRows(result.stdout);
      return (name) => {
        const versions = rpmVersions(name, rows, native);
        return { newest: versions[0] ?? null, versions };
      };
    },
  };
}

const lacking = (stderr: string): string =>
  `cannot be looked up, because the index of this machine is incomplete (${lastLines({ stdout: '', stderr }, 1)})`;

const trial = (names: readonly string[]): Command => ({ argv: ['rpm', '--erase', '--test', ...names] });

const NEEDS = '[provides|%{=NAME}|%{PROVIDENAME}\\n][requires|%{=NAME}|%{REQUIRENAME}\\n]';

const showNeeds = (names: readonly string[]): Command => ({
  argv: ['rpm', '--query', '--queryformat', NEEDS, ...new Set(names.map(rpmName))],
});

async function removesNothingElse(host: Host, names: readonly string[]): Promise<boolean> {
  const needs = await host.run(showNeeds(names));
  if (!exitedWith(needs, 0) || needs.truncated || rpmsNeedEachOther(needs.stdout)) return false;
  return exitedWith(await host.run(trial(names)), 0);
}

async function removalOf(host: Host, name: string): Promise<PackageRemoval> {
  const command = trial([name]);
  const result = await host.run(command);
  if (exitedWith(result, 0)) return NO_SIDE_EFFECTS;
  const removes = dependentsIn(result.stderr);
  return removes.length > 0 ? { removes, installs: [] } : { refusal: commandFailure(command, result) };
}

/** Extracts names from lines such as `lib is needed by (installed) app-1.0-1.noarch`. */
function dependentsIn(text: string): readonly string[] {
  const found = [...text.matchAll(/ is needed by \(installed\) (?:\d+:)?(\S+)-[^-\s]+-[^-\s]+$/gm)];
  return [...new Set(found.map(([, name = '']) => name))].sort();
}

/** True when one of the packages may need another. A required file, other than the shell, may belong to any of them. */
function rpmsNeedEachOther(text: string): boolean {
  const lines = text.split('\n').map((line) => line.split('|'));
  const givers = new Map(
    lines.flatMap(([what, name = '', given = '']) => (what === 'provides' ? [[given, name]] : [])),
  );
  return lines.some(([what, name, needed = '']) => {
    if (what !== 'requires' || needed === '/bin/sh') return false;
    return needed.startsWith('/') || ![undefined, name].includes(givers.get(needed));
  });
}
