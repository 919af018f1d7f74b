/** `package-winget`: a package of the Windows Package Manager, from its source `winget`; version 1.4 or newer. */
import type { CommandRefusal, CommandResult } from './command.js';
import type { Host, RunStep } from './host.js';
import { recordsOf, textOf } from './json-answer.js';
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
import { answerOf, powershell, powershellFailure, readAnswer } from './windows/powershell.js';
import { foldCase } from './windows/windows-case.js';

/** Excludes blanks and quotes, which Windows PowerShell changes when it passes them on. */
const NAME = {
  pattern: /^[\p{L}\p{N}][\p{L}\p{N}.+_-]*$/u,
  described: 'must be the exact id of a package, such as Git.Git',
};
const VERSION = {
  pattern: /^[0-9A-Za-z][0-9A-Za-z.+_~()-]*$/,
  described: 'must be "latest" or a version as "winget show --versions" lists it',
};

const TIMEOUT_SECS = 3600;
/** winget's two codes for success that needs a restart of the machine. */
const RESTART_NEEDED = [0x8a150109 | 0, 0x8a15010b | 0] as const;
const MISSING: CommandRefusal = {
  code: 'command_missing',
  message: 'winget is not on this machine; it comes with the App Installer from Microsoft, version 1.4 or newer',
};

const winget = (verb: string, name: string, more: readonly string[]): RunStep => {
  const silent = ['--silent', '--accept-source-agreements', '--disable-interactivity'];
  const agreed = verb === 'uninstall' ? silent : [...silent, '--accept-package-agreements'];
  const args = [verb, '--id', name, '--exact', '--source', 'winget', ...more, ...agreed];
  const command = {
    ...powershell(RUN_WINGET, { arguments: args, ok: RESTART_NEEDED }),
    timeoutSecs: TIMEOUT_SECS,
    lifetime: 'outlive',
  } as const;
  return { do: 'run', command };
};

export const packageWinget = defineResource<PackageBody, PackageFact>({
  kind: 'package-winget',
  family: 'package-winget',
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
  planRemoval: ({ name }, have) => decidePackageRemoval(have, [winget('uninstall', name, [])]),
  memo: (_want, have) => packageMemo(have),
  explain,
});

const managerOf = ({ name }: PackageBody): PackageManager => {
  const exactly = (version: string) => winget('install', name, ['--version', version]);
  return {
    isSameVersion: (one, other) => compareWingetVersions(one, other) === 0,
    install: (version) => [version === null ? winget('install', name, []) : exactly(version)],
    upgrade: () => [winget('upgrade', name, [])],
    // winget cannot downgrade, so the newer version is removed first.
    change: (from, to) =>
      compareWingetVersions(from, to) < 0
        ? [winget('upgrade', name, ['--version', to])]
        : [winget('uninstall', name, []), exactly(to)],
    unpin: `winget pin remove --id ${name} --exact`,
  };
};

async function read(host: Host, wants: readonly PackageBody[], purpose: ReadPurpose): Promise<readonly PackageFact[]> {
  const asks = purpose === 'plan' || purpose === 'apply';
  const latest = wants.filter((want) => asks && wantedVersion(want) === null).map(({ name }) => name);
  const command = { ...powershell(READ_WINGET, { versions_of: latest }), timeoutSecs: 600 };
  const known = readAnswer(command, await host.run(command));
  if ('refusal' in known) return wants.map(() => ({ is: 'unreadable', refusal: known.refusal }));
  const { missing, code, output, exported, shown } = known.answer;
  if (missing === true) return wants.map(() => ({ is: 'unreadable', refusal: MISSING }));
  const installed = parseWingetExport(textOf(exported));
  if (installed === null) {
    const refusal = wingetFailure('the list of packages', typeof code === 'number' ? code : 1, textOf(output));
    return wants.map(() => ({ is: 'unreadable', refusal }));
  }
  const newest = new Map(
    recordsOf(shown).map((one) => [foldCase(textOf(one.id)), parseWingetVersions(textOf(one.output))[0]]),
  );
  return wants.map(({ name }) => factOf(installed.get(name.toLowerCase()), newest.get(foldCase(name)) ?? null));
}

function factOf(version: string | undefined, newest: string | null): PackageFact {
  if (version === undefined) return { is: 'absent', newest };
  const newer = newest !== null && compareWingetVersions(version, newest) < 0 ? newest : null;
  return { is: 'installed', version, newer, isPinned: false };
}

function explain(_host: Host, { name }: PackageBody, { command }: RunStep, result: CommandResult): CommandRefusal {
  const answer = answerOf(result);
  if (answer?.missing === true) return MISSING;
  if (typeof answer?.code === 'number') return wingetFailure(name, answer.code, textOf(answer.output));
  return powershellFailure(command, result);
}

/** The meaning of a return code of `winget`, which is the same in every language. */
interface Meaning {
  readonly code: CommandRefusal['code'];
  /** Text after the name of the package. */
  readonly text: string;
}

const failed = (text: string): Meaning => ({ code: 'command_failed', text });

/** Return codes from winget's documentation. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  '8a150002': {
    code: 'package_manager_broken',
    text: 'this winget is too old: it does not take the arguments of version 1.4',
  },
  '8a15000b': {
    code: 'package_manager_broken',
    text: 'the sources of winget are corrupt; try "winget source reset --force"',
  },
  '8a15000f': { code: 'package_manager_broken', text: 'the index of winget is missing; try "winget source update"' },
  '8a150010': failed('none of its installers fits this machine'),
  '8a150011': failed('its installer is not the one that its manifest tells of (hash mismatch)'),
  '8a150014': { code: 'package_unknown', text: 'no source of winget has that package' },
  '8a150016': failed('several packages match'),
  '8a150017': { code: 'package_version_unknown', text: 'no source of winget has that version' },
  '8a150019': { code: 'permission_denied', text: 'it needs an administrator' },
  '8a15002b': failed('winget finds no update that fits this machine'),
  '8a150030': failed('its uninstaller failed'),
  '8a15003a': { code: 'permission_denied', text: 'a group policy forbids it' },
  '8a15004b': { code: 'package_manager_broken', text: 'a source of winget cannot be opened' },
  '8a150056': failed('its installer does not run as an administrator'),
  '8a150068': failed('it is pinned; let it go with "winget pin remove"'),
  '8a150102': { code: 'package_manager_locked', text: 'another installation is in progress on this machine' },
};

function wingetFailure(name: string, code: number, output: string): CommandRefusal {
  const hex = (code >>> 0).toString(16).padStart(8, '0');
  const meaning = MEANINGS[hex];
  if (meaning !== undefined)
    return { code: meaning.code, message: `${name}: ${meaning.text} (0x${hex.toUpperCase()})` };
  const lines = output.trim();
  return {
    code: 'command_failed',
    message: `winget ended with 0x${hex.toUpperCase()} for ${name}${lines === '' ? '' : `: ${lines}`}`,
  };
}

/** Parses an export; returns versions by lower-case identifier, or null for other text. */
export function parseWingetExport(text: string): ReadonlyMap<string, string> | null {
  const found = new Map<string, string>();
  const root = parsed(text);
  if (root === null) return null;
  for (const source of recordsOf(root.Sources)) {
    for (const { PackageIdentifier: id, Version: version } of recordsOf(source.Packages)) {
      if (typeof id === 'string') found.set(id.toLowerCase(), typeof version === 'string' ? version : '');
    }
  }
  return found;
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const [root] = recordsOf(JSON.parse(text.replace(/^\ufeff/, '')));
    return root ?? null;
  } catch {
    return null;
  }
}

/** Parses `winget show --versions`: the versions below the line of dashes, newest first. */
export function parseWingetVersions(output: string): readonly string[] {
  // A progress indicator is overwritten with carriage returns.
  const lines = output.split(/\r?\n/).map((line) => line.slice(line.lastIndexOf('\r') + 1).trim());
  const dashes = lines.findIndex((line) => /^-{3,}$/.test(line));
  return dashes === -1 ? [] : lines.slice(dashes + 1).filter((line) => line !== '');
}

/** Compares versions, numbers by value and labels as text; negative when `one` is older. */
export function compareWingetVersions(one: string, other: string): number {
  const [left, right] = [partsOf(one), partsOf(other)];
  for (let at = 0; at < Math.max(left.length, right.length); at += 1) {
    const [a, b] = [left[at] ?? EMPTY, right[at] ?? EMPTY];
    if (a.number !== b.number) return a.number < b.number ? -1 : 1;
    // 1.0-beta precedes 1.0.
    if (a.text !== b.text) return a.text === '' ? 1 : b.text === '' ? -1 : a.text < b.text ? -1 : 1;
  }
  return 0;
}

const EMPTY = { number: 0, text: '' };

const partsOf = (version: string): readonly { readonly number: number; readonly text: string }[] =>
  version
    .toLowerCase()
    .replace(/^v(?=\d)/, '')
    .split('.')
    .map((part) => {
      const [, digits = '', text = ''] = /^(\d*)(.*)$/s.exec(part.trim()) ?? [];
      return { number: Number(digits), text };
    });

/**
 * PowerShell scripts for `winget`. Its tables are cut to a width, so installed packages come from an export, and
 * versions come from a table of one column. The scripts are fixed; what they work on is in `$data`.
 */

/** Finds winget: the system account lacks the alias `winget.exe`, so the program is searched below WindowsApps. */
const FIND = `function Find-Winget {
  $alias = Get-Command -Name winget.exe -CommandType Application -ErrorAction SilentlyContinue | Select-Object -First 1
  if ($alias -ne $null) { return $alias.Path }
  $pattern = Join-Path $env:ProgramFiles 'WindowsApps\\Microsoft.DesktopAppInstaller_*_8wekyb3d8bbwe\\winget.exe'
  $found = @(Get-Item -Path $pattern -ErrorAction SilentlyContinue |
    Sort-Object -Property { [version](($_.Directory.Name -split '_')[1]) })
  if ($found.Count -gt 0) { return $found[$found.Count - 1].FullName }
  return $null
}
$winget = Find-Winget
if ($winget -eq $null) { Write-Answer @{ missing = $true }; exit 0 }
`;

const READ_WINGET = `${FIND}$file = Join-Path ([System.IO.Path]::GetTempPath()) ('orch-' + [Guid]::NewGuid().ToString() + '.json')
try {
  $output = (& $winget export --output $file --include-versions --source winget --accept-source-agreements --disable-interactivity) -join [Environment]::NewLine
  $code = $LASTEXITCODE
  $exported = $null
  if (Test-Path -LiteralPath $file) { $exported = [System.IO.File]::ReadAllText($file) }
} finally {
  Remove-Item -LiteralPath $file -Force -ErrorAction SilentlyContinue
}
$shown = @($data.versions_of | ForEach-Object {
  $lines = @(& $winget show --id $_ --exact --versions --source winget --accept-source-agreements --disable-interactivity)
  @{ id = $_; code = $LASTEXITCODE; output = ($lines -join [Environment]::NewLine) }
})
Write-Answer @{ code = $code; output = $output; exported = $exported; shown = $shown }
`;

/** Runs \`winget\` with \`$data.arguments\`; ends with 0 for 0 and for the codes in \`$data.ok\`. */
const RUN_WINGET = `${FIND}$arguments = @($data.arguments)
$lines = @(& $winget @arguments)
$code = $LASTEXITCODE
$tail = @($lines | Where-Object { $_ -match '\\w' } | Select-Object -Last 6) -join [Environment]::NewLine
Write-Answer @{ code = $code; output = $tail }
if ($code -eq 0 -or @($data.ok) -contains $code) { exit 0 }
exit 1
`;
