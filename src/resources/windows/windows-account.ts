/** Local users and groups of Windows: valid names, which they share and which ignore case, and failed changes. */

import type { CommandRefusal, CommandResult } from '../command.js';
import type { RunStep } from '../host.js';
import type { BodyProblem } from '../kind.js';
import { errorOf, powershellFailure } from './powershell.js';

/** Characters that the account database refuses in names. */
const FORBIDDEN = /["/\\[\]:|<>+=;,?*@\u0000-\u001f]/;

/** Returns why a name is invalid for a local account, or null. */
function problemOfAccountName(name: string): string | null {
  const forbidden = FORBIDDEN.exec(name)?.[0];
  if (forbidden !== undefined) return `must not contain ${JSON.stringify(forbidden)}`;
  if (/\p{Surrogate}/u.test(name)) return 'must be valid Unicode text';
  if (/^[. ]+$/.test(name)) return 'must not consist of dots and spaces only';
  if (name.endsWith('.')) return 'must not end with a dot';
  return name.trim() === name ? null : 'must not begin or end with a space';
}

/** Checks names, given by their JSON pointers. */
export function checkAccountNames(names: Readonly<Record<string, string>>): readonly BodyProblem[] {
  return Object.entries(names).flatMap(([path, name]) => {
    const problem = problemOfAccountName(name);
    return problem === null ? [] : [{ path, message: `the name ${JSON.stringify(name)} ${problem}` }];
  });
}

/**
 * Explains a failed change by the exception names of Microsoft.PowerShell.LocalAccounts, which are the same in every language.
 * @param what the account for the message, such as `the user web`
 */
export function accountFailure(what: string, { command }: RunStep, result: CommandResult): CommandRefusal {
  const error = errorOf(result);
  const id = error?.id.split(',')[0];
  switch (id) {
    case 'InvalidPassword':
      return {
        code: 'command_failed',
        message: `Windows refuses the password of ${what}: it does not meet the password policy of this machine`,
      };
    case 'NameInUse':
    case 'UserExists':
    case 'GroupExists':
      return { code: 'id_taken', message: `the name of ${what} is taken by another user or group of this machine` };
    case 'GroupNotFound':
      return {
        code: 'unknown_group',
        message: `${what} cannot join a group that does not exist: ${result.withheld ?? error?.message ?? ''}`,
      };
    case 'InvalidName':
      return { code: 'command_failed', message: `Windows does not take the name of ${what}` };
    default:
      return powershellFailure(command, result);
  }
}
