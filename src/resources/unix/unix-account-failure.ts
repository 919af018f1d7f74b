/** Explains failed changes of users and groups of Linux and macOS by exit status and output. */

import type { CommandRefusal } from '../command.js';
import { type CommandResult, commandFailure, exitedWith, withLines } from '../command.js';
import type { Host, RunStep } from '../host.js';

const PERMISSION = /permission denied|eDSPermissionError|eDSAuth|must be root|not privileged/i;
const LOCKED = /cannot lock|unable to lock|try again later/i;
const IN_USE = /currently used by process (\d+)|is currently logged in/;

/** Exit statuses of the `shadow` tools. */
const ID_TAKEN = 4;
const BUSY = 8;

/** @param what the account for the message, such as `the user web` */
export function unixAccountFailure(host: Host, what: string, step: RunStep, result: CommandResult): CommandRefusal {
  const { command } = step;
  const [program] = command.argv;
  const said = withLines(program, result, 2);
  if (result.end.how !== 'exited') return commandFailure(command, result);
  if (PERMISSION.test(result.stderr)) {
    return { code: 'permission_denied', message: `this user may not change ${what}; run the agent as root (${said})` };
  }
  if (exitedWith(result, BUSY) && /^(usermod|userdel)$/.test(program)) return busy(host, what, result);
  if (exitedWith(result, BUSY) && program === 'groupdel') {
    return { code: 'removal_refused', message: `${what} is still the primary group of a user (${said})` };
  }
  if (exitedWith(result, ID_TAKEN)) return taken(host, what, step, said);
  if (LOCKED.test(result.stderr)) {
    const message = `another program is changing the accounts of this machine; apply again when it is done (${said})`;
    return { code: 'busy', message };
  }
  return commandFailure(command, result);
}

function busy(host: Host, what: string, { stderr, stdout }: CommandResult): CommandRefusal {
  const pid = IN_USE.exec(stderr)?.[1] ?? IN_USE.exec(stdout)?.[1];
  const name = pid === undefined ? null : programOf(host, pid);
  const by = pid === undefined ? 'it is logged in' : `process ${pid}${name === null ? '' : ` (${name})`} runs as it`;
  const unit = pid === undefined ? null : serviceOf(host, pid);
  const hint =
    unit === null
      ? 'end its processes, for example with "loginctl terminate-user", and apply again'
      : `stop the service that it belongs to (systemctl stop ${unit}), and apply again`;
  return { code: 'account_busy', message: `${what} is in use: ${by}; ${hint}` };
}

/** Returns the name of a process; null when it has ended. */
const programOf = (host: Host, pid: string): string | null => processFile(host, pid, 'comm')?.trim() ?? null;

/** Returns the system service of a process; null for processes of login sessions. */
const serviceOf = (host: Host, pid: string): string | null =>
  /\/system\.slice\/(?:[^/\n]+\/)*([^/\n]+\.service)$/m.exec(processFile(host, pid, 'cgroup') ?? '')?.[1] ?? null;

function processFile(host: Host, pid: string, name: string): string | null {
  const [fact] = host.observe([{ path: `/proc/${pid}/${name}`, content: true, entries: false }]);
  return fact?.type === 'file' && fact.content.kind === 'text' ? fact.content.text : null;
}

function taken(host: Host, what: string, { command }: RunStep, said: string): CommandRefusal {
  const { argv } = command;
  const option = argv[0].startsWith('group') ? '-g' : '-u';
  const id = argv[argv.indexOf(option) + 1] ?? '';
  const accounts = host.accounts();
  const [word, holder] =
    option === '-g' ? ['group', accounts.groupName(Number(id))] : ['user', accounts.userName(Number(id))];
  const by = holder === id ? `taken (${said})` : `taken by the ${word} ${holder}`;
  return { code: 'id_taken', message: `${what} cannot have the number ${id}: it is ${by}` };
}
