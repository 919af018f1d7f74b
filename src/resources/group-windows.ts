/** `group-windows`: a local group of Windows with its description. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import type { CommandRefusal } from './command.js';
import type { RunStep } from './host.js';
import { recordsOf, textOf } from './json-answer.js';
import { type Decision, defineResource, type FieldChange } from './kind.js';
import { powershell, readAnswer } from './windows/powershell.js';
import { accountFailure, checkAccountNames } from './windows/windows-account.js';
import { foldCase } from './windows/windows-case.js';

const schema = closed({
  name: Type.String({ minLength: 1, maxLength: 256, description: 'Name of the local group; case does not count' }),
  description: optional(Type.String({ maxLength: 48, description: 'What the group is for; null: not managed' })),
});

type GroupBody = Type.Static<typeof schema>;

type WindowsGroup =
  | { readonly is: 'absent' }
  | { readonly is: 'there'; readonly description: string }
  | { readonly is: 'unreadable'; readonly refusal: CommandRefusal };

const READ = `$groups = @(Get-CimInstance -ClassName Win32_Group -Filter 'LocalAccount = TRUE' |
  ForEach-Object { @{ name = $_.Name; description = $_.Description } })
Write-Answer @{ groups = $groups }
`;
const CREATE = `$more = @{}
if ($data.description -ne $null) { $more.Description = $data.description }
$null = New-LocalGroup -Name $data.name @more
Write-Answer @{ done = $true }
`;
const DESCRIBE = `Set-LocalGroup -Name $data.name -Description $data.description
Write-Answer @{ done = $true }
`;
const REMOVE = `Remove-LocalGroup -Name $data.name
Write-Answer @{ done = $true }
`;

const step = (script: string, data: object): RunStep => ({ do: 'run', command: powershell(script, data) });

export const groupWindows = defineResource<GroupBody, WindowsGroup>({
  kind: 'group-windows',
  family: 'group',
  platforms: ['windows'],
  schema,
  check: ({ name }) => checkAccountNames({ '/name': name }),
  identity: ({ name }) => foldCase(name),
  requires: () => [],
  queried: true,

  async read(host, wants) {
    const command = powershell(READ, {});
    const read = readAnswer(command, await host.run(command));
    if ('refusal' in read) return wants.map(() => ({ is: 'unreadable', refusal: read.refusal }));
    const groups = new Map(recordsOf(read.answer.groups).map((group) => [foldCase(textOf(group.name)), group]));
    return wants.map(({ name }) => {
      const group = groups.get(foldCase(name));
      return group ? { is: 'there', description: textOf(group.description) } : { is: 'absent' };
    });
  },

  exists: (have) => have.is !== 'absent',

  plan({ name, description }, have): Decision {
    switch (have.is) {
      case 'unreadable':
        return { action: 'fail', ...have.refusal };
      case 'absent': {
        const changes: FieldChange[] =
          description == null ? [] : [{ field: 'description', before: null, after: description }];
        return { action: 'create', changes, steps: [step(CREATE, { name, description: description ?? null })] };
      }
      case 'there': {
        if (description == null || description === have.description) return { action: 'none' };
        const change = { field: 'description', before: have.description, after: description };
        return { action: 'update', changes: [change], steps: [step(DESCRIBE, { name, description })] };
      }
    }
  },

  planRemoval({ name }, have): Decision {
    if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
    if (have.is === 'absent') return { action: 'none' };
    return { action: 'remove', changes: [], steps: [step(REMOVE, { name })] };
  },

  keepsWithheld: true,
  explain: (_host, { name }, failed, result) => accountFailure(`the group ${name}`, failed, result),
});
