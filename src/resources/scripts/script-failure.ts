/** Says why a text of a `script` did not do its work. */
import type { Command, CommandResult } from '../command.js';
import { commandFailure, withLines } from '../command-failure.js';
import type { CommandRefusal } from '../kind.js';

/** @param part the member of the body that was run */
export function scriptFailure(
  part: 'apply' | 'check' | 'undo',
  command: Pick<Command, 'argv'>,
  result: CommandResult,
): CommandRefusal {
  const { end } = result;
  switch (end.how) {
    case 'exited':
      return { code: 'script_failed', message: withLines(`${part} ended with status ${end.code}`, result) };
    case 'killed':
      return { code: 'script_failed', message: withLines(`${part} was ended by ${end.signal}`, result) };
    case 'timed-out': {
      const sentence = `${part} was stopped after ${end.seconds} seconds, which is the script_timeout of the agent`;
      return { code: 'command_timed_out', message: withLines(sentence, result) };
    }
    case 'cancelled':
      return { code: 'cancelled', message: `${part} was stopped because the operation was cancelled` };
    case 'not-started':
      return commandFailure(command, result);
  }
}
