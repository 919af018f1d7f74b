import type { CommandRefusal } from './kind.js';

/** Programs that resource kinds run on the machine: what is asked of the Host, and what it answers. */

/** An argument vector, never a line for a shell. It runs in `/`, in a process group of its own, without a terminal. */
export interface Command {
  /** The program, by absolute path or by its name in the system's search path, and its arguments. */
  readonly argv: readonly [string, ...string[]];
  /** Text for its standard input, which is empty without it. */
  readonly input?: string;
  /** Added to a clean environment of PATH, HOME, USER, LOGNAME and LANG=C.UTF-8. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Text for a file that nobody but the agent's user can read; its path becomes the last argument, and it is gone when
   * the command has ended. `suffix` ends its name, such as `.ps1`.
   */
  readonly script?: { readonly text: string; readonly suffix: string };
  /** Seconds, then its whole process group is ended; `script` is what the agent grants scripts. 120 unless told. */
  readonly timeoutSecs?: number | 'script';
  /**
   * What happens when the run is cancelled or the agent is stopped: `end` ends its process group on a cancel; `finish`, the
   * standard, waits for it; `outlive` waits as well, and the end of the agent does not take it along (package managers).
   */
  readonly lifetime?: 'end' | 'finish' | 'outlive';
}

/** Seconds that a command has unless it says otherwise. */
export const COMMAND_TIMEOUT_SECS = 120;

/** Bytes of each stream that are kept: the first half and the last half of that. */
export const MAX_OUTPUT_BYTES = 256 * 1024;

/** How a command ended. */
export type CommandEnd =
  | { readonly how: 'exited'; readonly code: number }
  /** Ended by a signal that did not come from orch. */
  | { readonly how: 'killed'; readonly signal: string }
  | { readonly how: 'timed-out'; readonly seconds: number }
  | { readonly how: 'cancelled' }
  /** The program is not there (`missing`) or could not be started. */
  | { readonly how: 'not-started'; readonly missing: boolean; readonly message: string };

export interface CommandResult {
  readonly end: CommandEnd;
  /** UTF-8, with the replacement character for what is none. */
  readonly stdout: string;
  readonly stderr: string;
  /** True when the middle of a stream was left out. */
  readonly truncated: boolean;
}

/** True when a command ended by itself with that status. */
export const exitedWith = ({ end }: CommandResult, ...codes: readonly number[]): boolean =>
  end.how === 'exited' && codes.includes(end.code);

/** Says why a command has failed, from how it ended and the last lines that it wrote. */
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
