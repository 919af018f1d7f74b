/** Users and groups of Linux and macOS: what the tools write, hostile names, many at once, and why a change has failed. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { groupUnix } from '../../src/resources/group-unix.js';
import type { RunStep } from '../../src/resources/host.js';
import type { Decision, PlanContext, ReadPurpose } from '../../src/resources/kind.js';
import { parsePlist } from '../../src/resources/unix/mac-accounts.js';
import { parsePasswd } from '../../src/resources/unix/read-unix-accounts.js';
import { problemOfUnixName } from '../../src/resources/unix/unix-accounts.js';
import { userUnix } from '../../src/resources/user-unix.js';
import { type Facts, FakeHost, type Recorded, resultOf } from '../support/resources.js';

const context = (more: Partial<PlanContext> = {}): PlanContext => ({
  accounts: new FakeHost({}).accounts(),
  declares: () => false,
  cleared: [],
  written: () => null,
  removes: () => false,
  sensitive: false,
  purpose: 'plan',
  due: new Set(),
  mayAppear: false,
  comesLater: () => false,
  isMade: () => false,
  memo: null,
  digest: () => '',
  ...more,
});

const argvOf = (decision: Decision | undefined): readonly (readonly string[])[] =>
  decision !== undefined && 'steps' in decision
    ? decision.steps.map((step) => (step.do === 'run' ? [...step.command.argv] : []))
    : [];

type User = Parameters<typeof userUnix.plan>[0];

async function planUsers(facts: Facts, wants: readonly User[], purpose: ReadPurpose = 'plan') {
  const host = new FakeHost(facts);
  const haves = await userUnix.read(host, wants, purpose);
  const decide = purpose === 'removal' ? userUnix.planRemoval : userUnix.plan;
  const decisions = wants.map((want, at) => decide.call(userUnix, want, haves[at] as never, context({ purpose })));
  return { decisions, ran: host.ran };
}

/**
 * The form of `dscl -plist . -readall` as the recorded output in the tests of puppetlabs/puppet
 * (spec/unit/provider/user/directoryservice_spec.rb) has it: a list of records, each attribute with a list of values.
 */
const readall = (...records: readonly Readonly<Record<string, readonly string[]>>[]): string => {
  const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const attribute = ([name, values]: readonly [string, readonly string[]]) => `
\t\t<key>dsAttrTypeStandard:${name}</key>
\t\t<array>${values.map((value) => `\n\t\t\t<string>${escaped(value)}</string>`).join('')}
\t\t</array>`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<array>${records.map((record) => `\n\t<dict>${Object.entries(record).map(attribute).join('')}\n\t</dict>`).join('')}
</array>
</plist>
`;
};

const READ_USERS = 'dscl -plist . -readall /Users RecordName UniqueID PrimaryGroupID NFSHomeDirectory UserShell';
const READ_GROUPS = 'dscl -plist . -readall /Groups RecordName PrimaryGroupID GroupMembership';

const mac: Facts = {
  platform: 'macos',
  paths: { '/bin/zsh': { type: 'symlink', target: 'zsh' } },
  commands: {
    [READ_USERS]: readall(
      {
        NFSHomeDirectory: ['/var/empty'],
        PrimaryGroupID: ['-2'],
        RecordName: ['nobody', 'BUILTIN\\Nobody'],
        UniqueID: ['-2'],
        UserShell: ['/usr/bin/false'],
      },
      {
        NFSHomeDirectory: ['/Users/anna & co'],
        PrimaryGroupID: ['20'],
        RecordName: ['anna', 'Anna Alias'],
        UniqueID: ['501'],
        UserShell: ['/bin/zsh'],
      },
      { RecordName: ['half'], PrimaryGroupID: ['20'] },
    ),
    [READ_GROUPS]: readall(
      { GroupMembership: ['root'], PrimaryGroupID: ['20'], RecordName: ['staff', 'BUILTIN\\Users'] },
      { GroupMembership: ['root', 'anna'], PrimaryGroupID: ['80'], RecordName: ['admin'] },
      { PrimaryGroupID: ['300'], RecordName: ['ops'] },
    ),
  },
};

describe('users of macOS', () => {
  it('are read with two questions, and compared field by field', async () => {
    const { decisions, ran } = await planUsers(mac, [
      { name: 'anna', uid: 501, primary_group: 'staff', additional_groups: ['80'], home: '/Users/anna & co' },
      { name: 'anna', shell: '/bin/bash', additional_groups: ['ops'] },
      { name: 'nobody', uid: 4294967294 },
    ]);
    expect(ran.map(({ argv }) => argv.join(' '))).toEqual([READ_USERS, READ_GROUPS]);
    expect(decisions[0]).toEqual({ action: 'none' });
    expect(decisions[1]).toMatchObject({
      changes: [
        { field: 'additional_groups', before: 'admin', after: 'ops' },
        { field: 'shell', before: '/bin/zsh', after: '/bin/bash' },
      ],
    });
    expect(argvOf(decisions[1])).toEqual([
      ['dscl', '.', '-create', '/Users/anna', 'UserShell', '/bin/bash'],
      ['dseditgroup', '-o', 'edit', '-n', '.', '-a', 'anna', '-t', 'user', 'ops'],
      ['dseditgroup', '-o', 'edit', '-n', '.', '-d', 'anna', '-t', 'user', 'admin'],
    ]);
    expect(decisions[2]).toEqual({ action: 'none' });
  });

  it('are made closed, each with a free number', async () => {
    const { decisions } = await planUsers(mac, [
      { name: 'first' },
      { name: 'second', uid: 502, additional_groups: ['admin'] },
      { name: 'third', primary_group: 'ops', home: '/srv/third', shell: '/bin/sh' },
      { name: '_agent', system: true },
    ]);
    expect(argvOf(decisions[0])).toEqual([
      ['dscl', '.', '-create', '/Users/first', 'Password', '*'],
      ['dscl', '.', '-create', '/Users/first', 'RealName', 'first'],
      ['dscl', '.', '-create', '/Users/first', 'PrimaryGroupID', '20'],
      ['dscl', '.', '-create', '/Users/first', 'NFSHomeDirectory', '/Users/first'],
      ['dscl', '.', '-create', '/Users/first', 'UserShell', '/bin/zsh'],
      ['dscl', '.', '-create', '/Users/first', 'UniqueID', '503'],
      ['createhomedir', '-c', '-u', 'first'],
    ]);
    expect(argvOf(decisions[1])).toContainEqual(['dscl', '.', '-create', '/Users/second', 'UniqueID', '502']);
    expect(argvOf(decisions[1]).at(-1)).toEqual(['createhomedir', '-c', '-u', 'second']);
    expect(
      argvOf(decisions[2])
        .slice(2, 6)
        .map((argv) => argv.at(-1)),
    ).toEqual(['300', '/srv/third', '/bin/sh', '504']);
    expect(argvOf(decisions[3])).toEqual([
      ['dscl', '.', '-create', '/Users/_agent', 'Password', '*'],
      ['dscl', '.', '-create', '/Users/_agent', 'RealName', '_agent'],
      ['dscl', '.', '-create', '/Users/_agent', 'IsHidden', '1'],
      ['dscl', '.', '-create', '/Users/_agent', 'PrimaryGroupID', '20'],
      ['dscl', '.', '-create', '/Users/_agent', 'NFSHomeDirectory', '/var/empty'],
      ['dscl', '.', '-create', '/Users/_agent', 'UserShell', '/usr/bin/false'],
      ['dscl', '.', '-create', '/Users/_agent', 'UniqueID', '200'],
    ]);
  });

  it('are completed when a record was left unfinished', async () => {
    const { decisions } = await planUsers(mac, [{ name: 'half' }]);
    expect(decisions[0]).toMatchObject({ action: 'update', changes: [] });
    expect(argvOf(decisions[0]).map((argv) => argv.at(-2))).toEqual(['NFSHomeDirectory', 'UserShell', 'UniqueID']);
  });

  it('leave their groups before they go, and keep their home directory', async () => {
    const { decisions } = await planUsers(mac, [{ name: 'anna' }], 'removal');
    expect(decisions[0]).toMatchObject({ action: 'remove', reason: '/Users/anna & co stays' });
    expect(argvOf(decisions[0])).toEqual([
      ['dseditgroup', '-o', 'edit', '-n', '.', '-d', 'anna', '-t', 'user', 'admin'],
      ['dscl', '.', '-delete', '/Users/anna'],
    ]);
  });

  it('cannot be read when dscl writes something else', async () => {
    for (const text of [
      '',
      'Name: x',
      readall({ RecordName: ['a'] }).slice(0, -20),
      '<plist><string>x</string></plist>',
    ]) {
      const facts: Facts = { platform: 'macos', commands: { [READ_USERS]: text, [READ_GROUPS]: readall() } };
      expect((await planUsers(facts, [{ name: 'anna' }])).decisions).toMatchObject([{ code: 'observe_failed' }]);
    }
  });
});

describe('groups of macOS', () => {
  it('are made, renumbered with the users that are in them, and removed', async () => {
    const wants = [
      { name: 'new', gid: 400 },
      { name: 'staff', gid: 21 },
      { name: 'ops', gid: 80 },
    ];
    const host = new FakeHost(mac);
    const haves = await groupUnix.read(host, wants, 'plan');
    const [made, renumbered, taken] = wants.map((want, at) => groupUnix.plan(want, haves[at] as never, context()));
    expect(argvOf(made)).toEqual([['dseditgroup', '-o', 'create', '-n', '.', '-i', '400', 'new']]);
    expect(argvOf(renumbered)).toEqual([
      ['dscl', '.', '-create', '/Groups/staff', 'PrimaryGroupID', '21'],
      ['dscl', '.', '-create', '/Users/anna', 'PrimaryGroupID', '21'],
      ['dscl', '.', '-create', '/Users/half', 'PrimaryGroupID', '21'],
    ]);
    expect(taken).toMatchObject({ action: 'fail', code: 'id_taken' });
    const removal = groupUnix.planRemoval({ name: 'ops' }, haves[2] as never, context({ purpose: 'removal' }));
    expect(argvOf(removal)).toEqual([['dscl', '.', '-delete', '/Groups/ops']]);
  });
});

describe('property lists', () => {
  it('are read with every kind of value', () => {
    const text = `<?xml version="1.0"?>
<plist version="1.0"><dict>
<key>a &amp; &#60;b&#x3E;</key><array><string/><integer>7</integer><true/></array>
<key>empty</key><dict/><key>none</key><array/><key>data</key><data>aGk=</data>
</dict></plist>`;
    expect(parsePlist(text)).toEqual(
      new Map<string, unknown>([
        ['a & <b>', ['', '7', 'true']],
        ['empty', new Map()],
        ['none', []],
        ['data', 'aGk='],
      ]),
    );
  });

  it('are nothing when they are cut, wrong or too deep', () => {
    const whole = readall({ RecordName: ['a'], UniqueID: ['1'] });
    for (let end = 0; end < whole.lastIndexOf('</array>'); end += 7) expect(parsePlist(whole.slice(0, end))).toBeNull();
    expect(parsePlist(`<plist>${'<array>'.repeat(100_000)}`)).toBeNull();
    expect(parsePlist('<plist><dict><string>x</string></dict></plist>')).toBeNull();
  });

  it('are never thrown at', () => {
    fc.assert(fc.property(fc.string(), (text) => void parsePlist(`<plist>${text}`)));
  });
});

describe('names', () => {
  const hostile = [
    '-r',
    '--',
    '+x',
    '~x',
    'a:b',
    'a,b',
    'a/b',
    'a\\b',
    'a b',
    'a\tb',
    'a\nb',
    'a\0b',
    '\u202ea',
    '\ud800',
    '0',
    '.',
    '..',
  ];

  it.each(hostile)('of no account: %j', (name) => {
    expect(problemOfUnixName(name)).not.toBeNull();
    expect(userUnix.check({ name })).toHaveLength(1);
    expect(groupUnix.check({ name })).toHaveLength(1);
  });

  it.each(['$(reboot)', "o'neill", '"x"', 'a;b', 'a*', 'web$', 'müller', '_www'])(
    'stay one argument: %j',
    async (name) => {
      const commands = { [`getent passwd -- ${name}`]: { code: 2 }, [`getent group -- ${name}`]: { code: 2 } };
      const { decisions } = await planUsers({ paths: FILES, commands }, [{ name }]);
      expect(argvOf(decisions[0])).toEqual([['useradd', '-m', '--', name]]);
      const { decisions: onMac } = await planUsers(mac, [{ name }]);
      for (const [program, ...args] of argvOf(onMac[0])) {
        expect(['dscl', 'createhomedir']).toContain(program);
        expect(args).toContain(program === 'dscl' ? `/Users/${name}` : name);
      }
    },
  );
});

const text = (content: string) =>
  ({
    type: 'file',
    size: content.length,
    content: { kind: 'text', text: content },
    uid: 0,
    gid: 0,
    mode: 0o644,
  }) as const;
const FILES = { '/etc/passwd': text('root:x:0:0:root:/root:/bin/bash\n'), '/etc/group': text('root:x:0:\n') };

describe('accounts in files', () => {
  it('pass over what is no account', () => {
    const lines = [
      '+::::::',
      '-eve::::::',
      '# note',
      '',
      'short:x',
      ':x:0:0::/:/bin/sh',
      'a:x:one:0::/:',
      'b:x:1:99999999999::/:',
    ];
    expect(parsePasswd([...lines, 'ok:x:1:2:c:/h:/s', 'last:x:3:4::/h:'].join('\n'), true)).toEqual([
      { name: 'ok', uid: 1, gid: 2, comment: 'c', home: '/h', shell: '/s', isLocal: true },
      { name: 'last', uid: 3, gid: 4, comment: '', home: '/h', shell: '', isLocal: true },
    ]);
  });

  it('are asked for once, whatever the number of users', async () => {
    const names = Array.from({ length: 500 }, (_, n) => `user${n}`);
    const commands = {
      [`getent passwd -- ${names.join(' ')}`]: { code: 2 },
      [`getent group -- ${['team', ...names].join(' ')}`]: { code: 2, stdout: 'team:x:900:\n' },
    };
    const wants = names.map((name) => ({ name, primary_group: 'team' }));
    const { decisions, ran } = await planUsers({ paths: FILES, commands }, wants);
    expect(ran).toHaveLength(2);
    expect(decisions.every((decision) => decision.action === 'create')).toBe(true);
  });
});

describe('why a change has failed', () => {
  const step = (...argv: [string, ...string[]]): RunStep => ({ do: 'run', command: { argv } });
  const facts: Facts = {
    users: { eve: 1500 },
    groups: { crew: 1600 },
    paths: {
      '/proc/4711/comm': text('sshd-session\n'),
      '/proc/4711/cgroup': text('0::/user.slice/user-1000.slice/session-3.scope\n'),
      '/proc/469/comm': text('worker\n'),
      '/proc/469/cgroup': text('0::/system.slice/app.service\n'),
    },
  };
  const explain = (command: RunStep, recorded: Recorded, kind = userUnix as unknown as typeof groupUnix) =>
    kind.explain?.(new FakeHost(facts), { name: 'web' }, command, resultOf(recorded));

  it.each([
    [
      step('userdel', '--', 'web'),
      { code: 8, stderr: 'userdel: user web is currently used by process 4711\n' },
      'account_busy',
      'the user web is in use: process 4711 (sshd-session) runs as it',
    ],
    [
      step('usermod', '-u', '7', '--', 'web'),
      { code: 8, stderr: 'usermod: user web is currently used by process 469\n' },
      'account_busy',
      'process 469 (worker) runs as it; stop the service that it belongs to (systemctl stop app.service)',
    ],
    [
      step('usermod', '-u', '7', '--', 'web'),
      { code: 8, stderr: 'usermod: user web is currently used by process 1\n' },
      'account_busy',
      'process 1 runs as it',
    ],
    [
      step('userdel', '--', 'web'),
      { code: 8, stderr: 'userdel: user web is currently logged in\n' },
      'account_busy',
      'logged in',
    ],
    [
      step('useradd', '-m', '-u', '1500', '--', 'web'),
      { code: 4, stderr: 'useradd: UID 1500 is not unique\n' },
      'id_taken',
      'the user web cannot have the number 1500: it is taken by the user eve',
    ],
    [
      step('usermod', '-u', '1', '--', 'web'),
      { code: 4, stderr: "usermod: UID '1' already exists\n" },
      'id_taken',
      "it is taken (usermod: usermod: UID '1' already exists)",
    ],
    [
      step('useradd', '-m', '--', 'web'),
      { code: 1, stderr: 'useradd: Permission denied.\nuseradd: cannot lock /etc/passwd; try again later.\n' },
      'permission_denied',
      'run the agent as root',
    ],
    [
      step('useradd', '-m', '--', 'web'),
      { code: 1, stderr: 'useradd: cannot lock /etc/passwd; try again later.\n' },
      'busy',
      'another program is changing the accounts',
    ],
    [step('useradd', '-m', '--', 'web'), { missing: true as const }, 'command_missing', 'useradd is not installed'],
    [
      step('useradd', '-m', '--', 'web'),
      { code: 3, stderr: "useradd: invalid user name 'web'\n" },
      'command_failed',
      'invalid user name',
    ],
    [
      step('dscl', '.', '-delete', '/Users/web'),
      {
        code: 40,
        stderr: '<main> delete status: eDSPermissionError\n<dscl_cmd> DS Error: -14120 (eDSPermissionError)\n',
      },
      'permission_denied',
      'this user may not change the user web',
    ],
  ] as const)('%j %j', (command, recorded, code, message) => {
    expect(explain(command, recorded)).toMatchObject({ code, message: expect.stringContaining(message) });
  });

  it('names the holder of a group number, and refuses the primary group of a user', () => {
    const add = step('groupadd', '-g', '1600', '--', 'web');
    expect(explain(add, { code: 4, stderr: "groupadd: GID '1600' already exists\n" }, groupUnix)).toMatchObject({
      code: 'id_taken',
      message: 'the group web cannot have the number 1600: it is taken by the group crew',
    });
    const del = step('groupdel', '--', 'web');
    const stderr = "groupdel: cannot remove the primary group of user 'eve'\n";
    expect(explain(del, { code: 8, stderr }, groupUnix)).toMatchObject({ code: 'removal_refused' });
  });
});

it('does not take half of the accounts for all of them', async () => {
  for (const platform of ['linux', 'macos'] as const) {
    const host = new FakeHost({ ...mac, paths: FILES, platform });
    host.run = async () => ({ ...resultOf(''), truncated: true });
    const [have] = await userUnix.read(host, [{ name: 'web' }], 'plan');
    expect(have).toMatchObject({ is: 'unreadable', refusal: { code: 'observe_failed' } });
  }
});
