/** apt and dnf: what several packages cost to look at, what goes along with a removal, and what failures mean. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunStep } from '../../src/resources/host.js';
import type { Body, ResourceKind } from '../../src/resources/kind.js';
import { packageApt } from '../../src/resources/package-apt.js';
import { packageDnf } from '../../src/resources/package-dnf.js';
import { compareRpmVersions, isRpmVersion } from '../../src/resources/packages/rpm-installed.js';
import { type Facts, FakeHost, type Recorded, resultOf } from '../support/resources.js';

/** Answers every command by its program and first word; the last record that fits wins. */
class AnyHost extends FakeHost {
  constructor(answers: Readonly<Record<string, Recorded>>) {
    const commands = new Proxy<Record<string, Recorded>>(
      {},
      { get: (_, line) => Object.entries(answers).findLast(([start]) => String(line).startsWith(start))?.[1] ?? '' },
    );
    super({ commands } satisfies Facts);
  }
}

const row = (name: string, version = '1') => `${name}|all|${version}|install|ok|installed\n`;

describe('a look at many packages', () => {
  const names = Array.from({ length: 50 }, (_, at) => `p${at}`);
  const wants = names.map((name) => ({ name }));

  it.each([
    { kind: packageApt, commands: ['dpkg-query', 'find', 'apt-cache'] },
    { kind: packageDnf, commands: ['rpm', 'uname', 'find', 'sh'] },
  ])('takes as many commands as one at a single $kind.kind', async ({ kind, commands }) => {
    for (const some of [wants.slice(0, 1), wants]) {
      const host = new AnyHost({ find: 'index 1.0\n' });
      expect(await kind.read(host, some, 'plan')).toHaveLength(some.length);
      expect(host.ran.map(({ argv }) => argv[0])).toEqual(commands);
    }
  });

  it('takes two commands for the removal of packages that do not need each other', async () => {
    const apt = new AnyHost({
      'dpkg-query': names.map((name) => row(name)).join(''),
      'dpkg-query --show --showformat=${Package}|${Provides}': names.map((name) => `${name}|||libc6 (>= 2)\n`).join(''),
      'apt-get remove -s': names.map((name) => `Remv ${name} [1]\n`).join(''),
    });
    const haves = await packageApt.read(apt, wants, 'removal');
    expect(haves.map((have) => 'removal' in have && have.removal)).toEqual(
      names.map(() => ({ removes: [], installs: [] })),
    );
    expect(apt.ran).toHaveLength(3);
  });
});

describe('the removal of packages that need each other', () => {
  const wants = [{ name: 'lib' }, { name: 'app' }];
  const removals = async <B extends object, H>({ read }: ResourceKind<B, H>, host: FakeHost, bodies: readonly B[]) =>
    (await read(host, bodies, 'removal')).map((have) => (have as Body).removal);

  it('asks apt about each, be the need a name, an alternative or something provided', async () => {
    for (const needs of ['app||||lib (= 1)\n', 'app||||other | lib\n', 'app|||virtual\n']) {
      const host = new AnyHost({
        'dpkg-query': `${row('lib')}${row('app')}`,
        'dpkg-query --show --showformat=${Package}|${Provides}': `lib|virtual (= 1)||\n${needs}`,
        'apt-get remove -s': 'Remv app [1]\nRemv lib [1]\n',
        'apt-get remove -s -q -o APT::Get::AutomaticRemove=false -o APT::Get::Purge=false app': 'Remv app [1]\n',
      });
      expect(await removals(packageApt, host, wants)).toEqual([
        { removes: ['app'], installs: [] },
        { removes: [], installs: [] },
      ]);
    }
  });

  it('asks rpm about each, be the need a name or a file', async () => {
    for (const needs of ['requires|app|lib\n', 'requires|app|/usr/lib/lib.so\n']) {
      const host = new AnyHost({
        'rpm --query': 'lib|1-1|noarch\napp|1-1|noarch\n',
        'rpm --query --queryformat [provides': `provides|lib|lib\nprovides|app|app\nrequires|lib|/bin/sh\n${needs}`,
        'rpm --erase --test lib': { code: 1, stderr: '\tlib is needed by (installed) app-1-1.noarch\n' },
        'rpm --erase --test lib app': '',
      });
      expect(await removals(packageDnf, host, wants)).toEqual([
        { removes: ['app'], installs: [] },
        { removes: [], installs: [] },
      ]);
    }
  });
});

describe('an error of apt', () => {
  const STEP: RunStep = { do: 'run', command: { argv: ['apt-get', 'install'] }, items: ['tool=1'] };
  const explain = (stderr: string, stdout = '', name = 'tool') =>
    packageApt.explain?.(new FakeHost({}), { name }, STEP, resultOf({ code: 100, stdout, stderr }));

  it.each([
    {
      about: 'a lock that was waited for',
      stderr: 'E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?',
      stdout:
        'Waiting for cache lock: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 18 (aptitude)...',
      code: 'package_manager_locked',
      message:
        'process 18 (aptitude) holds /var/lib/dpkg/lock-frontend, and apt gave up waiting for it; apply again when it is released',
    },
    {
      about: 'a lock without a named holder',
      stderr: 'E: Unable to lock directory /var/cache/apt/archives/',
      code: 'package_manager_locked',
      message: "another process holds dpkg's lock, and apt gave up waiting for it; apply again when it is released",
    },
    {
      about: 'a user who may not',
      stderr:
        'E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\n' +
        'E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?',
      code: 'permission_denied',
      message: 'this user may not change the package tool; run the agent as root',
    },
    {
      about: 'a dpkg that was cut off',
      stderr: "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem. ",
      code: 'package_manager_broken',
      message: 'on this machine, an earlier run of dpkg was cut off; see to it with: dpkg --configure -a',
    },
    {
      about: 'packages that lack others',
      stderr: "E: Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution).",
      code: 'package_manager_broken',
      message: 'on this machine, packages lack what they depend on; see to it with: apt-get --fix-broken install',
    },
    {
      about: 'a package that is held',
      stderr: 'E: Held packages were changed and -y was used without --allow-change-held-packages.',
      code: 'package_held',
      message: 'tool needs a change to a package that is held on this machine; "apt-mark showhold" names those',
    },
    {
      about: 'an unknown package',
      stderr: 'E: Unable to locate package tool',
      code: 'package_unknown',
      message: 'tool is not in the index of this machine',
    },
    {
      about: 'an unknown version',
      stderr: "E: Version '1' for 'tool' was not found",
      code: 'package_version_unknown',
      message: 'the index of this machine does not offer tool in version 1',
    },
    {
      about: 'a package that is in the way',
      stderr: 'E: Packages need to be removed but remove is disabled.',
      stdout:
        'The following packages will be REMOVED:\n  rival\n  second third\nThe following NEW packages will be installed:\n  tool\n',
      code: 'removal_refused',
      message: 'tool is not installed, because rival, second, third would have to be removed for it; remove that first',
    },
    {
      about: 'what it cannot solve',
      stderr: 'E: Unable to correct problems, you have held broken packages.',
      stdout: 'The following packages have unmet dependencies:\n tool : Depends: lib (>= 2) but 1 is to be installed\n',
      code: 'command_failed',
      message:
        'apt cannot install tool: The following packages have unmet dependencies:\ntool : Depends: lib (>= 2) but 1 is to be installed',
    },
  ])('tells $about', async ({ stderr, stdout, code, message }) => {
    expect(await explain(stderr, stdout)).toEqual({ code, message });
  });

  const STDOUT =
    'Setting up other (1) ...\nfine\nSetting up tool (1) ...\nout of tool\nSetting up third (1) ...\nnot of tool\n';
  const STDERR = [
    'debconf: delaying package configuration, since apt-utils is not installed',
    'cannot reach the thing',
    'dpkg: error processing package tool (--configure):',
    ' installed tool package post-installation script subprocess returned error exit status 3',
    'Errors were encountered while processing:\n tool\nE: Sub-process /usr/bin/dpkg returned an error code (1)',
  ].join('\n');
  const REASON = [
    'failed: installed tool package post-installation script subprocess returned error exit status 3',
    'out of tool',
    'cannot reach the thing',
  ].join('\n');

  it("tells the last lines of a package's script", async () => {
    expect(await explain(STDERR, STDOUT)).toEqual({ code: 'command_failed', message: `tool ${REASON}` });
  });

  it('tells of another package that the run came to', async () => {
    const message = `tool, which the run for web came to, ${REASON}`;
    expect(await explain(STDERR, STDOUT, 'web')).toEqual({ code: 'command_failed', message });
  });

  const judge = (name: string, dpkg: string, items: readonly string[], verb = 'install') =>
    packageApt.judge?.(
      new AnyHost({ 'dpkg-query': dpkg }),
      { name },
      { do: 'run', command: { argv: ['apt-get', verb] }, items },
      resultOf({ code: 100, stdout: STDOUT, stderr: STDERR }),
    );

  it('is not of a package that is there all the same, and settled for the one whose script has failed', async () => {
    expect(await judge('web', row('web'), ['web=1'])).toBe('done');
    expect(await judge('web', row('web', '0'), ['web=1'])).toBe('undone');
    expect(await judge('web', '', ['web=1'])).toBe('undone');
    expect(await judge('web', '', ['web'], 'remove')).toBe('done');
    expect(await judge('web', row('web'), ['web'], 'remove')).toBe('undone');
    expect(await judge('tool', row('tool').replace('|installed', '|half-configured'), ['tool=1'])).toMatchObject({
      code: 'command_failed',
    });
  });
});

describe('an error of dnf', () => {
  const STEP: RunStep = { do: 'run', command: { argv: ['dnf', 'install'] }, items: ['tool-1-1'] };
  const explain = (stderr: string, stdout = '', code = 1) =>
    packageDnf.explain?.(new FakeHost({}), { name: 'tool' }, STEP, resultOf({ code, stdout, stderr }));

  const LOCK = 'RPMDB already locked by 79\n  The application with PID 79 is: dnf\n    Memory : 1.8 M RSS';
  const PROBLEM =
    "Error: \n Problem: package tool-1-1.noarch requires lib >= 2, but none of the providers can be installed\n  - conflicting requests\n(try to add '--allowerasing' to command line)";

  it('tells of its lock, of what it cannot solve and of what it protects', async () => {
    expect(await explain(LOCK, '', 200)).toEqual({
      code: 'package_manager_locked',
      message: "process 79 (dnf) holds dnf's lock, and orch gave up waiting for it; try again when it is released",
    });
    expect(await explain(PROBLEM)).toEqual({
      code: 'command_failed',
      message:
        'dnf cannot install tool: Problem: package tool-1-1.noarch requires lib >= 2, but none of the providers can be installed\n  - conflicting requests',
    });
    expect(
      await explain('Error: The operation would result in removing the following protected packages: tool'),
    ).toMatchObject({ code: 'removal_refused' });
    expect(await explain('No match for argument: tool-1-1\nError: Unable to find a match: tool-1-1')).toMatchObject({
      code: 'package_unknown',
    });
  });

  const STDOUT = [
    '  Installing       : tool-1-1.noarch                                       4/5 ',
    '  Running scriptlet: tool-1-1.noarch                                       4/5 ',
    'out of tool',
    'warning: %post(tool-1-1.noarch) scriptlet failed, exit status 3',
    '',
    '  Installing       : web-1-1.noarch                                        5/5 ',
  ].join('\n');
  const STDERR = 'Error in POSTIN scriptlet in rpm package tool\n';

  it('tells the last lines of a script, and is settled for its package only', async () => {
    const { code, message } = (await explain(STDERR, STDOUT)) ?? {};
    expect(code).toBe('command_failed');
    expect(message).toMatch(/^the POSTIN script of tool failed, and rpm counts the package as installed/);
    expect(message).toMatch(/\nout of tool\nwarning: %post\(tool-1-1.noarch\) scriptlet failed, exit status 3$/);
    const judge = (name: string, rpm: string) =>
      packageDnf.judge?.(
        new AnyHost({ rpm, uname: 'x86_64\n' }),
        { name },
        { ...STEP, items: [`${name}-1-1`] },
        resultOf({ code: 1, stdout: STDOUT, stderr: STDERR }),
      );
    expect(await judge('tool', 'tool|1-1|noarch\n')).toMatchObject({ code: 'command_failed' });
    expect(await judge('web', 'web|1-1|noarch\n')).toBe('done');
    expect(await judge('web', 'web|1-10|noarch\n')).toBe('undone');
    expect(await judge('web', 'package web is not installed\n')).toBe('undone');
  });
});

describe('versions of rpm', () => {
  it.each([
    ['1.10', '1.9', 1],
    ['1.0', '1.0a', -1],
    ['1.0~rc1', '1.0', -1],
    ['1.0^git1', '1.0', 1],
    ['1.0^git1', '1.0.1', -1],
    ['1.a', '1.1', -1],
    ['1.0-2', '1.0-10', -1],
    ['1:1.0-1', '2.0-1', 1],
    ['0:1.0-1', '1.0-1', 0],
    ['1.01', '1.1', 0],
    ['1_0', '1.0', 0],
  ])('%s against %s is %i', (one, other, order) => {
    expect(Math.sign(compareRpmVersions(one, other))).toBe(order);
  });

  const part = fc.stringMatching(/^[0-9a-zA-Z._~^+]{1,6}$/);
  const version = fc
    .tuple(fc.option(fc.nat(2)), part, part)
    .map(([epoch, v, r]) => `${epoch === null ? '' : `${epoch}:`}${v}-${r}`);

  it('are in one order, and each is what is asked for by its own name', () => {
    fc.assert(
      fc.property(version, version, version, (a, b, c) => {
        expect(Math.sign(compareRpmVersions(a, b))).toBe(-Math.sign(compareRpmVersions(b, a)) + 0);
        const sorted = [a, b, c].sort(compareRpmVersions);
        expect(compareRpmVersions(sorted[0] ?? '', sorted[2] ?? '')).toBeLessThanOrEqual(0);
        expect(isRpmVersion(a, a)).toBe(true);
      }),
    );
  });

  it('are given as far as asked for', () => {
    expect(isRpmVersion('1.0', '2:1.0-3.el9')).toBe(true);
    expect(isRpmVersion('1.0-3.el9', '2:1.0-3.el9')).toBe(true);
    expect(isRpmVersion('1:1.0-3.el9', '2:1.0-3.el9')).toBe(false);
    expect(isRpmVersion('1.0-3', '1.0-3.el9')).toBe(false);
    expect(isRpmVersion('1', '1.0-1')).toBe(false);
  });
});
