/** Local users and groups of Windows: what PowerShell is given, and what its errors mean. Nothing here runs on a real Windows. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Command, CommandResult } from '../../src/resources/command.js';
import { groupWindows } from '../../src/resources/group-windows.js';
import type { RunStep } from '../../src/resources/host.js';
import type { Decision, PlanContext } from '../../src/resources/kind.js';
import { userWindows } from '../../src/resources/user-windows.js';
import { FakeHost, resultOf } from '../support/resources.js';

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
  digest: (value) => `digest of ${JSON.stringify(value)}`,
};

const HOSTILE = [
  'a\'b"c',
  '‘; Remove-Item C:\\ -Recurse; ‘',
  `$(calc)\`n\${env:PATH}`,
  '%PATH% & del *',
  '-Force',
  'ümläut 日本 🐟',
  '"@\n\'@\n',
  '</script>\\u0027',
];

function commandOf(decision: Decision): Command {
  if (!('steps' in decision)) throw new Error(`${decision.action} has no steps`);
  const [step] = decision.steps;
  if (step?.do !== 'run' || decision.steps.length !== 1) throw new Error('one command was expected');
  return step.command;
}

/** The first line of the input is data, the second the secret. */
const dataOf = ({ input = '' }: Command): Record<string, unknown> => JSON.parse(input.split('\n')[0] ?? '');
const secretOf = ({ input = '' }: Command): string =>
  (input.split('\n')[1] ?? '').replace(/.{4}/g, (digits) => String.fromCharCode(Number.parseInt(digits, 16)));

const newUser = (body: object) => userWindows.plan({ name: 'web', ...body }, { is: 'absent' }, CONTEXT);

describe('what PowerShell is given', () => {
  it('has no value of the module in the script or on the command line', () => {
    const plain = commandOf(newUser({ description: 'x', full_name: 'y', password: 'z', groups: ['g'] }));
    for (const text of HOSTILE) {
      const command = commandOf(newUser({ description: text, full_name: text, password: text, groups: [text] }));
      expect({ ...command, input: '' }).toEqual({ ...plain, input: '' });
      expect(dataOf(command)).toMatchObject({ description: text, full_name: text, join: [text] });
      expect(secretOf(command)).toBe(text);
    }
  });

  it('is ASCII in two lines, whatever the texts, and comes back as it was', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', minLength: 1 }),
        fc.string({ unit: 'binary', minLength: 1 }),
        (description, password) => {
          const command = commandOf(newUser({ description, password }));
          expect(command.input).toMatch(/^[ -~]*\n[0-9a-f]*\n$/);
          expect(dataOf(command).description).toBe(description);
          expect(secretOf(command)).toBe(password);
          expect(command.script?.text).toMatch(/^[\n -~]*$/);
        },
      ),
    );
  });

  it('holds a password only where no cmdlet is given it', () => {
    const command = commandOf(newUser({ password: 'correct horse' }));
    expect(JSON.stringify([command.argv, command.script, dataOf(command)])).not.toContain('correct horse');
    expect(command.input).not.toContain('correct horse');
  });
});

describe('a user', () => {
  const there = {
    is: 'there',
    user: {
      full_name: 'Web',
      description: 'd',
      account_disabled: false,
      password_never_expires: true,
      groups: ['Users', 'Old'],
    },
  } as const;

  it('is made with what is said of it, and nothing else', () => {
    const decision = newUser({ full_name: 'Web', account_disabled: true, groups: ['Users'], password: 'p' });
    expect(decision).toMatchObject({
      action: 'create',
      changes: [
        { field: 'full_name', before: '', after: 'Web' },
        { field: 'account_disabled', before: 'false', after: 'true' },
        { field: 'password', before: null, after: null },
        { field: 'groups', before: '', after: 'Users' },
      ],
    });
    expect(dataOf(commandOf(decision))).toEqual({
      name: 'web',
      create: true,
      full_name: 'Web',
      account_disabled: true,
      join: ['Users'],
      leave: [],
    });
  });

  it('gets its password again when it is made again, though that is known', () => {
    const context = { ...CONTEXT, memo: CONTEXT.digest('p') };
    expect(secretOf(commandOf(userWindows.plan({ name: 'web', password: 'p' }, { is: 'absent' }, context)))).toBe('p');
  });

  it('gets another password when that is another one than was set last', () => {
    const decision = userWindows.plan({ name: 'web', password: 'q' }, there, { ...CONTEXT, memo: CONTEXT.digest('p') });
    expect(decision).toMatchObject({ action: 'update', changes: [{ field: 'password', before: null, after: null }] });
    expect(secretOf(commandOf(decision))).toBe('q');
  });

  it('joins and leaves groups so that it is in exactly those', () => {
    const decision = userWindows.plan({ name: 'web', groups: ['users', 'Ops'] }, there, CONTEXT);
    expect(decision).toMatchObject({ changes: [{ field: 'groups', before: 'Old, Users', after: 'Ops, users' }] });
    expect(dataOf(commandOf(decision))).toEqual({ name: 'web', create: false, join: ['Ops'], leave: ['Old'] });
  });

  it('is removed by its name', () => {
    const command = commandOf(userWindows.planRemoval({ name: 'web' }, there, CONTEXT));
    expect(dataOf(command)).toEqual({ name: 'web' });
    expect(command.script?.text).toContain('Remove-LocalUser -Name $data.name');
  });

  it('is the same in any case of its name, and comes after its groups', () => {
    expect(userWindows.identity({ name: 'Jürgen' }, null)).toBe(userWindows.identity({ name: 'JÜRGEN' }, null));
    expect(userWindows.requires({ name: 'web', groups: ['Ops'] })).toEqual([{ family: 'group', identity: 'ops' }]);
  });
});

describe('a group', () => {
  it('is made, described and removed', () => {
    const made = commandOf(groupWindows.plan({ name: 'Ops', description: 'x' }, { is: 'absent' }, CONTEXT));
    expect(dataOf(made)).toEqual({ name: 'Ops', description: 'x' });
    const have = { is: 'there', description: 'old' } as const;
    const described = groupWindows.plan({ name: 'Ops', description: '' }, have, CONTEXT);
    expect(described).toMatchObject({ changes: [{ field: 'description', before: 'old', after: '' }] });
    expect(dataOf(commandOf(described))).toEqual({ name: 'Ops', description: '' });
    expect(dataOf(commandOf(groupWindows.planRemoval({ name: 'Ops' }, have, CONTEXT)))).toEqual({ name: 'Ops' });
  });
});

/** The ids are those of Microsoft.PowerShell.LocalAccounts 1.0 in Windows PowerShell 5.1, as its own tests tell them. */
describe('an error of the accounts module', () => {
  const step: RunStep = { do: 'run', command: { argv: ['powershell.exe'] } };
  const failed = (id: string, message = 'Meldung', native: number | null = null): CommandResult =>
    resultOf({ code: 1, stdout: JSON.stringify({ error: { id, message, native } }) });

  it.each([
    ['InvalidPassword,Microsoft.PowerShell.Commands.NewLocalUserCommand', 'command_failed', 'password policy'],
    ['UserExists,Microsoft.PowerShell.Commands.NewLocalUserCommand', 'id_taken', 'taken by another'],
    ['NameInUse,Microsoft.PowerShell.Commands.NewLocalUserCommand', 'id_taken', 'taken by another'],
    ['GroupNotFound,Microsoft.PowerShell.Commands.AddLocalGroupMemberCommand', 'unknown_group', 'Meldung'],
    ['AccessDenied,Microsoft.PowerShell.Commands.NewLocalUserCommand', 'permission_denied', 'administrator'],
    ['UserNotFound,Microsoft.PowerShell.Commands.SetLocalUserCommand', 'command_failed', 'Meldung'],
  ])('%s is told as %s', async (id, code, words) => {
    const refusal = await userWindows.explain?.(new FakeHost({}), { name: 'web' }, step, failed(id));
    expect(refusal).toMatchObject({ code });
    expect(refusal?.message).toContain(words);
  });

  it('passes on what PowerShell wrote when it could not even begin', async () => {
    const result = resultOf({ code: 1, stderr: 'running scripts is disabled on this system' });
    const refusal = await groupWindows.explain?.(new FakeHost({}), { name: 'Ops' }, step, result);
    expect(refusal?.message).toContain('running scripts is disabled');
  });
});
