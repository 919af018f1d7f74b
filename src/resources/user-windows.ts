/** `user-windows`: a local user of Windows with its password, flags and local groups. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import type { CommandRefusal } from './command.js';
import type { RunStep } from './host.js';
import { recordsOf, textOf, textsOf } from './json-answer.js';
import { type Decision, defineResource, type FieldChange, type PlanContext } from './kind.js';
import { powershell, powershellWithSecret, readAnswer } from './windows/powershell.js';
import { accountFailure, checkAccountNames } from './windows/windows-account.js';
import { foldCase } from './windows/windows-case.js';

const schema = closed({
  name: Type.String({ minLength: 1, maxLength: 20, description: 'Name of the local user; case does not count' }),
  full_name: optional(Type.String({ maxLength: 256, description: 'Full name; null: not managed' })),
  description: optional(Type.String({ maxLength: 48, description: 'What the user is for; null: not managed' })),
  password: optional(
    Type.String({ minLength: 1, maxLength: 127, description: 'Password, best from a secret; null: not managed' }),
  ),
  groups: optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
      description: 'All local groups that the user is in; null: not managed',
    }),
  ),
  account_disabled: optional(
    Type.Boolean({ description: 'Whether logons as the user are disabled; null: not managed' }),
  ),
  password_never_expires: optional(
    Type.Boolean({ description: 'Whether the password never expires; null: not managed' }),
  ),
});

type UserBody = Type.Static<typeof schema>;

interface WindowsUser {
  readonly full_name: string;
  readonly description: string;
  readonly account_disabled: boolean;
  readonly password_never_expires: boolean;
  /** Names of local groups in Windows' own spelling. */
  readonly groups: readonly string[];
}

type UserFact =
  | { readonly is: 'absent' }
  | { readonly is: 'there'; readonly user: WindowsUser }
  | { readonly is: 'unreadable'; readonly refusal: CommandRefusal };

/** The defaults of a new user. */
const NEW: WindowsUser = {
  full_name: '',
  description: '',
  account_disabled: false,
  password_never_expires: false,
  groups: [],
};

export const userWindows = defineResource<UserBody, UserFact>({
  kind: 'user-windows',
  family: 'user',
  platforms: ['windows'],
  schema,
  check: ({ name, groups }) => [
    ...checkAccountNames({ '/name': name }),
    ...checkAccountNames(Object.fromEntries((groups ?? []).map((group, at) => [`/groups/${at}`, group]))),
  ],
  identity: ({ name }) => foldCase(name),
  requires: ({ groups }) => (groups ?? []).map((group) => ({ family: 'group', identity: foldCase(group) })),
  queried: true,

  async read(host, wants) {
    const command = powershell(READ_USERS, { names: wants.map(({ name }) => name) });
    const read = readAnswer(command, await host.run(command));
    if ('refusal' in read) return wants.map(() => ({ is: 'unreadable', refusal: read.refusal }));
    const users = new Map(recordsOf(read.answer.users).map((user) => [foldCase(textOf(user.name)), user]));
    return wants.map(({ name }) => {
      const user = users.get(foldCase(name));
      return user ? { is: 'there', user: userOf(user) } : { is: 'absent' };
    });
  },

  exists: (have) => have.is !== 'absent',

  plan(want, have, context): Decision {
    if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
    const user = have.is === 'there' ? have.user : NEW;
    const isNew = have.is === 'absent';
    const fields = changedFields(want, user);
    const password = changedPassword(want, isNew ? null : context);
    const groups = changedGroups(want, user);
    const changes = [...fields, ...(password === null ? [] : [PASSWORD]), ...groups.changes];
    if (!isNew && changes.length === 0) return { action: 'none' };
    const set = new Set(fields.map(({ field }) => field));
    const data = {
      name: want.name,
      create: isNew,
      ...(set.has('full_name') ? { full_name: want.full_name } : {}),
      ...(set.has('description') ? { description: want.description } : {}),
      ...(set.has('account_disabled') ? { account_disabled: want.account_disabled } : {}),
      ...(set.has('password_never_expires') ? { password_never_expires: want.password_never_expires } : {}),
      join: groups.join,
      leave: groups.leave,
    };
    const step: RunStep = { do: 'run', command: powershellWithSecret(CHANGE_USER, data, password) };
    return { action: isNew ? 'create' : 'update', changes, steps: [step] };
  },

  planRemoval({ name }, have): Decision {
    if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
    if (have.is === 'absent') return { action: 'none' };
    const step: RunStep = { do: 'run', command: powershell(REMOVE_USER, { name }) };
    return { action: 'remove', changes: [], steps: [step] };
  },

  // A password cannot be read back, so the hash of the last one is kept.
  memoIsState: true,
  memo: ({ password }, _have, context) => (password == null ? null : context.digest(password)),

  keepsWithheld: true,
  explain: (_host, { name }, failed, result) => accountFailure(`the user ${name}`, failed, result),
});

const PASSWORD: FieldChange = { field: 'password', before: null, after: null };

/** Returns the password to set; null when it is not managed or unchanged. `context` is null for a new user. */
function changedPassword({ password }: UserBody, context: PlanContext | null): string | null {
  return password == null || (context && context.memo === context.digest(password)) ? null : password;
}

function changedFields(want: UserBody, have: WindowsUser): readonly FieldChange[] {
  const fields = ['full_name', 'description', 'account_disabled', 'password_never_expires'] as const;
  return fields.flatMap((field) => {
    const [before, after] = [have[field], want[field]];
    return after == null || after === before ? [] : [{ field, before: String(before), after: String(after) }];
  });
}

interface GroupChanges {
  readonly changes: readonly FieldChange[];
  readonly join: readonly string[];
  readonly leave: readonly string[];
}

function changedGroups({ groups }: UserBody, have: WindowsUser): GroupChanges {
  if (groups == null) return { changes: [], join: [], leave: [] };
  const wanted = new Set(groups.map(foldCase));
  const joined = new Set(have.groups.map(foldCase));
  const join = groups.filter((group) => !joined.has(foldCase(group)));
  const leave = have.groups.filter((group) => !wanted.has(foldCase(group)));
  if (join.length === 0 && leave.length === 0) return { changes: [], join, leave };
  return { changes: [{ field: 'groups', before: listed(have.groups), after: listed(groups) }], join, leave };
}

const listed = (names: readonly string[]): string =>
  [...new Map(names.map((name) => [foldCase(name), name]))]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, name]) => name)
    .join(', ');

const userOf = (user: Readonly<Record<string, unknown>>): WindowsUser => ({
  full_name: textOf(user.full_name),
  description: textOf(user.description),
  account_disabled: user.disabled === true,
  password_never_expires: user.password_expires === false,
  groups: textsOf(user.groups),
});

/**
 * Reads the wanted local users with their local groups. The groups come from the directory interface, because
 * Get-LocalGroupMember fails for a group with a deleted member. User names contain no separators of that interface.
 */
const READ_USERS = `$wanted = @{}
foreach ($name in $data.names) { $wanted[$name] = $true }
$users = @(Get-CimInstance -ClassName Win32_UserAccount -Filter 'LocalAccount = TRUE' |
  Where-Object { $wanted.ContainsKey($_.Name) } |
  ForEach-Object {
    $groups = @(([ADSI]"WinNT://$env:COMPUTERNAME/$($_.Name),user").psbase.Invoke('Groups') |
      ForEach-Object { [string]$_.GetType().InvokeMember('Name', 'GetProperty', $null, $_, $null) })
    @{
      name = $_.Name
      full_name = $_.FullName
      description = $_.Description
      disabled = $_.Disabled
      password_expires = $_.PasswordExpires
      groups = $groups
    }
  })
Write-Answer @{ users = $users }
`;

/** Creates or changes a user. Without a password, a new user gets 64 random characters that are not stored. */
const CHANGE_USER = `function Test-Given($name) { $data.PSObject.Properties.Match($name).Count -gt 0 }
if ($data.create) {
  if ($secret -eq $null) {
    $bytes = New-Object byte[] 46
    [System.Security.Cryptography.RandomNumberGenerator]::Create().GetBytes($bytes)
    $secret = New-Object System.Security.SecureString
    foreach ($c in ('aA1!' + [Convert]::ToBase64String($bytes).Substring(0, 60)).ToCharArray()) { $secret.AppendChar($c) }
  }
  $disabled = (Test-Given 'account_disabled') -and $data.account_disabled
  $null = New-LocalUser -Name $data.name -Password $secret -Disabled:$disabled
}
$change = @{}
if (-not $data.create -and $secret -ne $null) { $change.Password = $secret }
if (Test-Given 'full_name') { $change.FullName = $data.full_name }
if (Test-Given 'description') { $change.Description = $data.description }
if (Test-Given 'password_never_expires') { $change.PasswordNeverExpires = [bool]$data.password_never_expires }
if ($change.Count -gt 0) { Set-LocalUser -Name $data.name @change }
if (-not $data.create -and (Test-Given 'account_disabled')) {
  if ($data.account_disabled) { Disable-LocalUser -Name $data.name } else { Enable-LocalUser -Name $data.name }
}
$user = Get-LocalUser -Name $data.name
foreach ($group in $data.join) { Add-LocalGroupMember -Name $group -Member $user }
foreach ($group in $data.leave) { Remove-LocalGroupMember -Name $group -Member $user }
Write-Answer @{ done = $true }
`;

/** Removes a user and keeps the profile directory. */
const REMOVE_USER = `Remove-LocalUser -Name $data.name
Write-Answer @{ done = $true }
`;
