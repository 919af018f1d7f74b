/** Says why a command has failed, from how it ended and the last lines that it wrote. */
import type { Command, CommandResult } from './command.js';
import type { CommandRefusal } from './kind.js';

const LINES = 6;

/** The code and the message for a command whose result is not a success. */
export function commandFailure({ argv }: Pick<Command, 'argv'>, result: CommandResult): CommandRefusal {
  const [program] = argv;
  const { end } = result;
  switch (end.how) {
    case 'not-started':
      return end.missing
        ? { code: 'command_missing', message: `${program} is not installed on this machine` }
        : { code: 'command_failed', message: `${program} could not be started: ${end.message}` };
    case 'timed-out':
      return {
        code: 'command_timed_out',
        message: withLines(`${program} was stopped after ${end.seconds} seconds`, result),
      };
    case 'cancelled':
      return { code: 'cancelled', message: `${program} was stopped because the operation was cancelled` };
    case 'killed':
      return { code: 'command_failed', message: withLines(`${program} was ended by ${end.signal}`, result) };
    case 'exited':
      return { code: 'command_failed', message: withLines(`${program} ended with status ${end.code}`, result) };
  }
}

/** The last lines of standard error, or of standard output when there are none. */
export function lastLines({ stderr, stdout }: Pick<CommandResult, 'stderr' | 'stdout'>, count = LINES): string {
  const text = stderr.trim() === '' ? stdout : stderr;
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  return lines.slice(-count).join('\n');
}

/** A sentence with the last lines behind it, when there are any. */
export function withLines(sentence: string, result: CommandResult): string {
  const lines = lastLines(result);
  return lines === '' ? sentence : `${sentence}: ${lines}`;
}
