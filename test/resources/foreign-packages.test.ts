/** Chocolatey, winget and Homebrew: what is run, and what their errors mean. Recorded outputs; nothing here runs the real tools. */
import { describe, expect, it } from 'vitest';
import type { RunStep } from '../../src/resources/host.js';
import type { Decision, PlanContext } from '../../src/resources/kind.js';
import { packageBrew, parseBrewInfo } from '../../src/resources/package-brew.js';
import { isSameNugetVersion, packageChoco } from '../../src/resources/package-choco.js';
import {
  compareWingetVersions,
  packageWinget,
  parseWingetExport,
  parseWingetVersions,
} from '../../src/resources/package-winget.js';
import type { PackageFact } from '../../src/resources/packages/package-decision.js';
import { type Facts, FakeHost, resultOf } from '../support/resources.js';

const CONTEXT: PlanContext = {
  accounts: new FakeHost({}).accounts(),
  declares: () => false,
  cleared: [],
  written: () => null,
  removes: () => false,
  sensitive: false,
  purpose: 'apply',
  due: new Set(),
  memo: null,
  mayAppear: false,
  comesLater: () => false,
  isMade: () => false,
  digest: String,
};
const STEP: RunStep = { do: 'run', command: { argv: ['choco'] } };

describe('an error of choco', () => {
  const explain = (body: { name: string; version?: string }, code: number, stdout: string, facts: Facts = {}) =>
    packageChoco.explain?.(new FakeHost(facts), body, STEP, resultOf({ code, stdout }));

  /** chocolatey/choco issue 1842, version 0.10.15; version 2 writes the same sentence. */
  const NOT_FOUND = `nope not installed. The package was not found with the source(s) listed.
 Source(s): 'https://chocolatey.org/api/v2/'
 NOTE: When you specify explicit sources, it overrides default sources.

Chocolatey installed 0/1 packages. 1 packages failed.
 See the log for details (C:\\ProgramData\\chocolatey\\logs\\chocolatey.log).`;

  it('tells an unknown package', async () => {
    expect(await explain({ name: 'nope' }, 1, NOT_FOUND)).toEqual({
      code: 'package_unknown',
      message: 'no source of choco has a package nope',
    });
  });

  it('tells an unknown version of a package that is there', async () => {
    const commands = { 'choco search nope --exact --limit-output': 'nope|1.2.0\r\n' };
    expect(await explain({ name: 'nope', version: '9' }, 1, NOT_FOUND, { commands })).toEqual({
      code: 'package_version_unknown',
      message: 'no source of choco has nope in version 9; the newest is 1.2.0',
    });
    const none = { 'choco search nope --exact --limit-output': '' };
    expect(await explain({ name: 'nope', version: '9' }, 1, NOT_FOUND, { commands: none })).toMatchObject({
      code: 'package_unknown',
    });
  });

  /** chocolatey/choco issue 577, version 0.9.9. */
  it('names what needs a package that is not removed', async () => {
    const output = ` linqpad4 not uninstalled. An error occurred during uninstall:
 Unable to uninstall 'linqpad4 4.51.03' because 'linqpad 4.51.03' depends on it.`;
    expect(await explain({ name: 'linqpad4' }, 1, output)).toEqual({
      code: 'removal_refused',
      message: 'linqpad4 is not removed: linqpad 4.51.03 depends on it',
    });
  });

  it('tells that Windows Installer is busy', async () => {
    expect(await explain({ name: 'vlc' }, 1618, '')).toMatchObject({ code: 'package_manager_locked' });
  });

  it('passes on everything else', async () => {
    expect(await explain({ name: 'vlc' }, 1603, 'vlc (exited 1603) - Error while running')).toEqual({
      code: 'command_failed',
      message: 'choco ended with status 1603: vlc (exited 1603) - Error while running',
    });
  });
});

describe('a version of NuGet', () => {
  it.each([
    ['1.0', '1.0.0.0', true],
    ['01.2.3', '1.2.3', true],
    ['1.0.0-Beta', '1.0.0-beta', true],
    ['1.0.0+abc', '1.0.0', true],
    ['1.0.0-beta', '1.0.0', false],
    ['1.10', '1.1', false],
  ])('%s and %s are the same: %s', (one, other, same) => {
    expect(isSameNugetVersion(one, other)).toBe(same);
  });
});

describe('winget', () => {
  const there = (version: string, newer: string | null = null): PackageFact => ({
    is: 'installed',
    version,
    newer,
    isPinned: false,
  });

  /** The arguments of `winget`, step by step; none of them is in the script or on the command line. */
  function argumentsOf(decision: Decision): readonly (readonly string[])[] {
    if (!('steps' in decision)) throw new Error(`${decision.action} has no steps`);
    return decision.steps.map((step) => {
      if (step.do !== 'run') throw new Error('a command was expected');
      const { argv, script, input = '' } = step.command;
      expect(`${argv.join(' ')} ${script?.text}`).not.toContain('Git.Git');
      const data = JSON.parse(input) as { arguments: readonly string[]; ok: readonly number[] };
      // The two codes for a restart of the machine, as signed numbers.
      expect(data.ok).toEqual([-1978334967, -1978334965]);
      return data.arguments;
    });
  }

  const plan = (body: object, have: PackageFact) => packageWinget.plan({ name: 'Git.Git', ...body }, have, CONTEXT);
  const AGREED = ['--silent', '--accept-source-agreements', '--disable-interactivity', '--accept-package-agreements'];
  const args = (verb: string, ...more: string[]) => [
    verb,
    '--id',
    'Git.Git',
    '--exact',
    '--source',
    'winget',
    ...more,
    ...AGREED,
  ];

  it('installs, upgrades and removes by the exact id', () => {
    const absent: PackageFact = { is: 'absent', newest: '2.47.0' };
    const created = plan({}, absent);
    expect(created).toMatchObject({ action: 'create', changes: [{ field: 'version', before: null, after: '2.47.0' }] });
    expect(argumentsOf(created)).toEqual([args('install')]);
    expect(argumentsOf(plan({ version: '2.46.0' }, absent))).toEqual([args('install', '--version', '2.46.0')]);
    expect(argumentsOf(plan({}, there('2.46.2', '2.47.0')))).toEqual([args('upgrade')]);
    const removed = packageWinget.planRemoval({ name: 'Git.Git' }, there('2.46.2'), CONTEXT);
    expect(argumentsOf(removed)).toEqual([args('uninstall').filter((one) => one !== '--accept-package-agreements')]);
  });

  it('goes up to a version, and down to one through an uninstallation', () => {
    expect(argumentsOf(plan({ version: '2.47.0' }, there('2.46.2')))).toEqual([args('upgrade', '--version', '2.47.0')]);
    expect(argumentsOf(plan({ version: '2.40.1' }, there('2.46.2')))).toEqual([
      args('uninstall').filter((one) => one !== '--accept-package-agreements'),
      args('install', '--version', '2.40.1'),
    ]);
  });

  it.each([
    [-1978335212, 'package_unknown'],
    [-1978335209, 'package_version_unknown'],
    [-1978334974, 'package_manager_locked'],
    [-1978335215, 'command_failed'],
    [-1978335224, 'command_failed'],
  ])('tells the code %d as %s', async (code, fault) => {
    const stdout = JSON.stringify({ code, output: 'Ein Text' });
    const refusal = await packageWinget.explain?.(
      new FakeHost({}),
      { name: 'Git.Git' },
      STEP,
      resultOf({ code: 1, stdout }),
    );
    expect(refusal).toMatchObject({ code: fault });
    expect(refusal?.message).toContain('Git.Git');
  });

  /** As git-for-windows/git issue 5235 shows it, and with the turning bar that a redirected winget writes. */
  it('reads versions below the line of dashes, in any language', () => {
    const table = '\r   - \r   \\ \rGefunden Git [Git.Git]\r\nVersion\r\n--------\r\n2.47.0\r\n2.46.2 \r\n\r\n';
    expect(parseWingetVersions(table)).toEqual(['2.47.0', '2.46.2']);
    expect(parseWingetVersions('Es wurde kein Paket gefunden.\r\n')).toEqual([]);
  });

  it('reads an export with several sources, without versions, or none', () => {
    const one = { Packages: [{ PackageIdentifier: 'A.B', Version: '1' }] };
    const other = { Packages: [{ PackageIdentifier: 'C.D' }] };
    expect(parseWingetExport(JSON.stringify({ Sources: [one, other] }))).toEqual(
      new Map([
        ['a.b', '1'],
        ['c.d', ''],
      ]),
    );
    expect(parseWingetExport('{"Sources":[]}')).toEqual(new Map());
    expect(parseWingetExport('')).toBeNull();
  });

  it.each([
    ['1.9', '1.10', -1],
    ['1.0', '1.0.0', 0],
    ['v1.2', '1.2', 0],
    ['1.0-beta', '1.0', -1],
    ['2.0', '1.99.99', 1],
    ['1.0.a', '1.0.B', -1],
  ])('compares %s with %s', (one, other, result) => {
    expect(Math.sign(compareWingetVersions(one, other))).toBe(result);
    expect(Math.sign(compareWingetVersions(other, one))).toBe(result === 0 ? 0 : -result);
  });
});

describe('an error of brew', () => {
  const explain = (stderr: string) =>
    packageBrew.explain?.(new FakeHost({}), { name: 'pcre2' }, STEP, resultOf({ code: 1, stderr }));

  it.each([
    // Homebrew 4.6 and 6.0, and one dependent or several.
    [
      'Error: Refusing to uninstall /opt/homebrew/Cellar/pcre2/10.47_1\nbecause it is required by fish, which is currently installed.\nYou can override this and force removal with:\n  brew uninstall --ignore-dependencies pcre2\n',
      'removal_refused',
      'pcre2 is not removed: fish needs it',
    ],
    [
      'Error: Refusing to uninstall /opt/homebrew/Cellar/pcre2/10.47_1\nbecause it is required by deno, python@3.14, sqlite and yt-dlp, which are currently installed.\n',
      'removal_refused',
      'deno, python@3.14, sqlite and yt-dlp',
    ],
    [
      'Warning: No available formula with the name "pcre2".\n==> Searching for similarly named formulae and casks...\nError: No formulae or casks found for pcre2.\n',
      'package_unknown',
      'neither a formula nor a cask',
    ],
    [
      'Error: A `brew install --formula pcre2` process has already locked /opt/homebrew/Cellar/pcre2.\nPlease wait for it to finish or terminate it to continue.\n',
      'package_manager_locked',
      'another brew',
    ],
    [
      'sudo: a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass helper\n',
      'permission_denied',
      'password of an administrator',
    ],
    ['Error: pcre2: SHA256 mismatch\n', 'command_failed', 'SHA256 mismatch'],
  ])('%j is told as %s', async (stderr, code, words) => {
    const refusal = await explain(stderr);
    expect(refusal).toMatchObject({ code });
    expect(refusal?.message).toContain(words);
  });

  it('takes nothing for JSON that is none', () => {
    expect(parseBrewInfo('Error: …')).toBeNull();
    expect(parseBrewInfo('{}')).toEqual([]);
  });
});

describe('brew with names that it does not know', () => {
  const sudo =
    '/usr/bin/sudo -n -H -u #501 -- /usr/bin/env HOMEBREW_NO_AUTO_UPDATE=1 HOMEBREW_NO_ENV_HINTS=1 HOMEBREW_NO_COLOR=1 HOMEBREW_NO_EMOJI=1 /opt/homebrew/bin/brew';

  it('still learns the versions of the others', async () => {
    const jq = { formulae: [{ name: 'jq', versions: { stable: '1.7.1' }, installed: [] }], casks: [] };
    const host = new FakeHost({
      platform: 'macos',
      paths: { '/opt/homebrew': { type: 'directory', entries: null, uid: 501, gid: 80, mode: 0o755 } },
      commands: {
        '/usr/bin/id -u': '0\n',
        [`${sudo} info --json=v2 --installed`]: '{"formulae":[],"casks":[]}',
        [`${sudo} info --json=v2 nope jq`]: {
          code: 1,
          stderr: 'Error: No available formula or cask with the name "nope".',
        },
        [`${sudo} info --json=v2 nope`]: {
          code: 1,
          stderr: 'Error: No available formula or cask with the name "nope".',
        },
        [`${sudo} info --json=v2 jq`]: JSON.stringify(jq),
      },
    });
    const wants = [
      { name: 'nope', version: '1' },
      { name: 'jq', version: '1.7.1' },
    ];
    const haves = await packageBrew.read(host, wants, 'plan');
    expect(haves.map(({ newest }) => newest)).toEqual([null, '1.7.1']);
  });
});
