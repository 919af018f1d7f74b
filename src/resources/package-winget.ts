/** `package-winget`: a package of the Windows Package Manager, from its source `winget`; version 1.4 or newer. */
import type { CommandResult } from './command.js';
import type { Host, RunStep } from './host.js';
import { recordsOf, textOf } from './json-answer.js';
import { type CommandRefusal, defineResource, type ReadPurpose } from './kind.js';
import { checkPackage, type PackageBody, PackageBodySchema, wantedVersion } from './packages/package-body.js';
import {
  decidePackage,
  decidePackageRemoval,
  type PackageFact,
  type PackageManager,
  packageMemo,
} from './packages/package-decision.js';
import { wingetFailure } from './packages/winget-failure.js';
import { compareWingetVersions, parseWingetExport, parseWingetVersions } from './packages/winget-output.js';
import { READ_WINGET, RUN_WINGET } from './packages/winget-scripts.js';
import { answerOf, powershell, powershellFailure, readAnswer } from './windows/powershell.js';
import { foldCase } from './windows/windows-case.js';

/** Neither blanks nor quotes, which Windows PowerShell does not pass on as they are. */
const NAME = {
  pattern: /^[\p{L}\p{N}][\p{L}\p{N}.+_-]*$/u,
  described: 'must be the exact id of a package, such as Git.Git',
};
const VERSION = {
  pattern: /^[0-9A-Za-z][0-9A-Za-z.+_~()-]*$/,
  described: 'must be "latest" or a version as "winget show --versions" lists it',
};

const TIMEOUT_SECS = 3600;
/** A restart of the machine finishes it: the two codes that winget has for that. */
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
  platforms: ['windows'],
  schema: PackageBodySchema,
  check: (body) => checkPackage(body, NAME, VERSION),
  identity: ({ name }) => foldCase(name),
  requires: () => [],
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
    // winget only goes up; an older version comes after the newer one has gone.
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
