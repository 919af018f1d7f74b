/** Why a change of a local user or group has failed, by the error ids of Microsoft.PowerShell.LocalAccounts. */
import type { CommandResult } from '../command.js';
import type { RunStep } from '../host.js';
import type { CommandRefusal } from '../kind.js';
import { errorOf, powershellFailure } from './powershell.js';

/**
 * The ids are the names of the module's exceptions, the same in every language of Windows.
 * @param what such as `the user web`
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
        message: `${what} cannot join a group that is not there: ${error?.message ?? ''}`,
      };
    case 'InvalidName':
      return { code: 'command_failed', message: `Windows does not take the name of ${what}` };
    default:
      return powershellFailure(command, result);
  }
}
