/** `package-choco`: a package of Chocolatey, version 1 or 2. */
import {
  type Command,
  type CommandRefusal,
  type CommandResult,
  commandFailure,
  exitedWith,
  lastLines,
} from './command.js';
import type { Host, RunStep } from './host.js';
import { defineResource, type ReadPurpose } from './kind.js';
import {
  agreedPackage,
  checkPackage,
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
import { foldCase } from './windows/windows-case.js';

/** A NuGet version. */

/** One to four numbers, a label, and metadata that comparisons ignore. */
const NUGET_VERSION = /^\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;

/** True when NuGet considers two versions equal, such as 1.0 and 1.0.0.0. */
export const isSameNugetVersion = (one: string, other: string): boolean => normalized(one) === normalized(other);

function normalized(version: string): string {
  const [plain = ''] = version.split('+');
  const dash = plain.indexOf('-');
  const numbers = (dash === -1 ? plain : plain.slice(0, dash)).split('.').map((part) => part.replace(/^0+(?=\d)/, ''));
  while (numbers.length < 4) numbers.push('0');
  return `${numbers.join('.')}${dash === -1 ? '' : plain.slice(dash).toLowerCase()}`;
}

/** NuGet's rule for names. */
const NAME = {
  // choco reads "all" as every package, and some endings as files with a list of packages.
  pattern: /^(?!all$)(?!.*\.(?:config|nupkg|nuspec)$)\w+(?:[.-]\w+)*$/i,
  described:
    'must be the id of a package: letters, digits, "_", ".", "-"; neither "all" nor the name of a package file',
};
const VERSION = {
  pattern: new RegExp(`^latest$|${NUGET_VERSION.source}`),
  described: 'must be "latest" or a version such as 1.2.3 or 1.2.3-beta1',
};

/** Success, and success that needs a restart of the machine. */
const DONE = [0, 1641, 3010] as const;
/** Installers are slow; Chocolatey's own timeout is 45 minutes. */
const TIMEOUT_SECS = 3600;
/** Status of Windows Installer while another installation runs. */
const INSTALLER_BUSY = 1618;

/** Version 1 needs `--local-only`; version 2 silently accepts it with `--limit-output`, or refuses it. */
const LIST: Command = { argv: ['choco', 'list', '--local-only', '--limit-output'] };
const LIST_2: Command = { argv: ['choco', 'list', '--limit-output'] };
const OUTDATED: Command = { argv: ['choco', 'outdated', '--limit-output'], timeoutSecs: 600 };

const choco = (verb: string, options: readonly string[], name: string): RunStep => ({
  do: 'run',
  command: {
    argv: ['choco', verb, '--yes', '--no-progress', ...options],
    timeoutSecs: TIMEOUT_SECS,
    lifetime: 'outlive',
  },
  items: [name],
  ok: DONE,
});

export const packageChoco = defineResource<PackageBody, PackageFact>({
  kind: 'package-choco',
  family: 'package-choco',
  isListed: true,
  platforms: ['windows'],
  schema: PackageBodySchema,
  check: (body) => checkPackage(body, NAME, VERSION),
  identity: ({ name }) => foldCase(name),
  requires: () => [],
  agreed: agreedPackage,
  queried: true,
  read,
  exists: (have) => have.is !== 'absent',
  plan: (want, have, context) => decidePackage(want, have, context, managerOf(want)),
  planRemoval: ({ name }, have) => decidePackageRemoval(have, [choco('uninstall', [], name)]),
  memo: (_want, have) => packageMemo(have),
  explain,
});

const managerOf = ({ name }: PackageBody): PackageManager => ({
  isSameVersion: isSameNugetVersion,
  install: (version) => [choco('install', version === null ? [] : ['--version', version], name)],
  upgrade: () => [choco('upgrade', [], name)],
  change: (_from, to) => [choco('upgrade', ['--allow-downgrade', '--version', to], name)],
  unpin: `choco pin remove --name ${name}`,
});

async function read(host: Host, wants: readonly PackageBody[], purpose: ReadPurpose): Promise<readonly PackageFact[]> {
  const installed = await list(host);
  if ('refusal' in installed) return wants.map(() => ({ is: 'unreadable', refusal: installed.refusal }));
  const asksSources = (purpose === 'plan' || purpose === 'apply') && wants.some((want) => wantedVersion(want) === null);
  const result = asksSources ? await host.run(OUTDATED) : null;
  // With enhanced exit codes, 2 means that some packages are outdated.
  const refusal = result === null || exitedWith(result, 0, 2) ? null : commandFailure(OUTDATED, result);
  const outdated = parseChocoOutdated(result?.stdout ?? '');
  return wants.map((want): PackageFact => {
    const version = installed.packages.get(foldCase(want.name));
    if (version === undefined) return { is: 'absent', newest: null };
    if (wantedVersion(want) === null && refusal) return { is: 'unreadable', refusal };
    const newer = outdated.get(foldCase(want.name));
    return { is: 'installed', version, newer: newer?.newer ?? null, isPinned: newer?.isPinned ?? false };
  });
}

async function list(
  host: Host,
): Promise<{ readonly packages: ReadonlyMap<string, string> } | { readonly refusal: CommandRefusal }> {
  const first = await host.run(LIST);
  const wasRefused = exitedWith(first, 1) && /has been removed/.test(first.stdout);
  const result = wasRefused ? await host.run(LIST_2) : first;
  return exitedWith(result, 0) ? { packages: parseChocoList(result.stdout) } : { refusal: refusalOf(LIST, result) };
}

function refusalOf(command: Command, result: CommandResult): CommandRefusal {
  if (result.end.how === 'not-started' && result.end.missing) {
    return {
      code: 'command_missing',
      message: 'Chocolatey is not installed on this machine: choco is not in its search path',
    };
  }
  return commandFailure(command, result);
}

async function explain(
  host: Host,
  body: PackageBody,
  { command }: RunStep,
  result: CommandResult,
): Promise<CommandRefusal> {
  const { name } = body;
  const text = `${result.stdout}\n${result.stderr}`;
  if (exitedWith(result, INSTALLER_BUSY)) {
    return {
      code: 'package_manager_locked',
      message: `${name}: another installation is in progress on this machine (1618)`,
    };
  }
  const [, dependents] = /Unable to uninstall '[^']*' because '([^']*)' depends? on it/i.exec(text) ?? [];
  if (dependents !== undefined) {
    return { code: 'removal_refused', message: `${name} is not removed: ${dependents} depends on it` };
  }
  if (/not found with the source\(s\) listed/i.test(text)) return await notFound(host, body);
  if (/is not able to|access to the path .* is denied/i.test(text) && /denied|elevated|administrator/i.test(text)) {
    return {
      code: 'permission_denied',
      message: `choco may not change ${name}; the agent has to be an administrator: ${lastLines(result, 2)}`,
    };
  }
  return refusalOf(command, result);
}

/** Distinguishes an unknown name from an unknown version, for which Chocolatey has the same message. */
async function notFound(host: Host, body: PackageBody): Promise<CommandRefusal> {
  const { name } = body;
  const version = wantedVersion(body);
  const unknown = { code: 'package_unknown', message: `no source of choco has a package ${name}` } as const;
  if (version === null) return unknown;
  const result = await host.run({ argv: ['choco', 'search', name, '--exact', '--limit-output'] });
  const newest = parseChocoList(result.stdout).get(foldCase(name));
  if (newest === undefined) return unknown;
  return {
    code: 'package_version_unknown',
    message: `no source of choco has ${name} in version ${version}; the newest is ${newest}`,
  };
}

/** Parses installed packages: `NAME|VERSION`. */
function parseChocoList(output: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [name, version, ...rest] of rowsOf(output)) {
    if (name && version && rest.length === 0) found.set(foldCase(name), version);
  }
  return found;
}

interface OutdatedPackage {
  readonly newer: string;
  readonly isPinned: boolean;
}

/** Parses outdated packages: `NAME|CURRENT|AVAILABLE|PINNED`. */
function parseChocoOutdated(output: string): ReadonlyMap<string, OutdatedPackage> {
  const found = new Map<string, OutdatedPackage>();
  for (const [name, current, newer, pinned, ...rest] of rowsOf(output)) {
    if (!name || !current || !newer || pinned === undefined || rest.length > 0) continue;
    found.set(foldCase(name), { newer, isPinned: pinned.toLowerCase() === 'true' });
  }
  return found;
}

/** Splits lines into fields; warnings have no bars, or blanks around them. */
const rowsOf = (output: string): readonly (readonly string[])[] =>
  output
    .split(/\r?\n/)
    .map((line) => line.trim().split('|'))
    .filter((fields) => fields.length > 1 && !/\s/.test(fields[0] ?? ''));
