/** Programs that resource kinds run on a machine: commands, results, and why a command failed. */
import type { FaultCode } from '../kernel/fault.js';

/** An argument vector, never a shell line. It runs in its own process group, without a terminal. */
export interface Command {
  /** The program (absolute path, or name in the system's search path) and its arguments. */
  readonly argv: readonly [string, ...string[]];
  /** Text for standard input [default: empty]. */
  readonly input?: string;
  /** The user that it runs as, by name or number, with its groups; on Linux [default: the agent's own]. */
  readonly user?: string;
  /** The directory that it runs in [default: `/`, on Windows that of the system]. */
  readonly directory?: string;
  /** Added to a clean environment of PATH, HOME, USER, LOGNAME and LANG=C.UTF-8. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Text of a private temporary file, whose path becomes the last argument. It is deleted after the command. `suffix` is the end
   * of its name, such as `.ps1`.
   */
  readonly script?: { readonly text: string; readonly suffix: string };
  /** Seconds after which its process group is ended; `script` is the agent's script timeout [default: 120]. */
  readonly timeoutSecs?: number | 'script';
  /**
   * Behaviour when the run is cancelled or the agent stops: `end` ends the process group on a cancel; `finish` (default) waits
   * for it; `outlive` waits on a cancel, and survives the end of the agent, which does not wait (package managers).
   */
  readonly lifetime?: 'end' | 'finish' | 'outlive';
}

/** Default timeout of a command in seconds. */
export const COMMAND_TIMEOUT_SECS = 120;

/** Kept bytes of each stream: one half from its beginning, one from its end. */
export const MAX_OUTPUT_BYTES = 256 * 1024;

/** How a command ended. */
export type CommandEnd =
  | { readonly how: 'exited'; readonly code: number }
  /** Ended by a signal that orch did not send. */
  | { readonly how: 'killed'; readonly signal: string }
  | { readonly how: 'timed-out'; readonly seconds: number }
  | { readonly how: 'cancelled' }
  /**
   * The program, its user or its directory does not exist (`missing`), or it could not be started. With a `code`, the message
   * says it all.
   */
  | { readonly how: 'not-started'; readonly missing: boolean; readonly message: string; readonly code?: FaultCode };

export interface CommandResult {
  readonly end: CommandEnd;
  /** UTF-8, with replacement characters for invalid bytes. */
  readonly stdout: string;
  readonly stderr: string;
  /** True when the middle of a stream was dropped; `gapNote` stands in its place. */
  readonly truncated: boolean;
  /** Present when messages must not quote the streams, because they may hold secrets: a clause that says so. */
  readonly withheld?: string;
}

/** Returns the text in place of a dropped middle. */
export const gapNote = (bytes: number): string => `\n… ${bytes} bytes are left out …\n`;

/** Matches `gapNote`, also where a program has written the same text. */
export const GAP_NOTE = /\n… \d{1,16} bytes are left out …\n/;

/** Maximum characters that `tailOf` keeps, so that a secret of the maximum size is found in it as a whole. */
const MAX_TAIL = 64 * 1024;

/** Returns a result that keeps only the end of its output, for messages; undefined without output. */
export function tailOf(result: CommandResult): CommandResult | undefined {
  const [stdout, stderr] = [tail(result.stdout), tail(result.stderr)];
  if (stdout === '' && stderr === '') return undefined;
  return {
    ...result,
    stdout,
    stderr,
    truncated: result.truncated || stdout !== result.stdout || stderr !== result.stderr,
  };
}

const tail = (text: string): string =>
  text.length <= MAX_TAIL ? text : `${gapNote(text.length - MAX_TAIL)}${text.slice(-MAX_TAIL)}`;

/** True when a command ended by itself with one of these statuses. */
export const exitedWith = ({ end }: CommandResult, ...codes: readonly number[]): boolean =>
  end.how === 'exited' && codes.includes(end.code);

/** Maximum lines of output in a message. */
const LINES = 6;

/** Returns the refusal for an unsuccessful result, with the last lines of output. */
export function commandFailure({ argv }: Pick<Command, 'argv'>, result: CommandResult): CommandRefusal {
  const [program] = argv;
  const { end } = result;
  switch (end.how) {
    case 'not-started':
      if (end.code !== undefined) return { code: end.code, message: end.message };
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

/** Returns the last whole lines of standard error or, if that is empty, of standard output; none of withheld output. */
export function lastLines(
  { stderr, stdout, withheld }: Pick<CommandResult, 'stderr' | 'stdout' | 'withheld'>,
  count = LINES,
): string {
  if (withheld !== undefined) return '';
  const text = stderr.trim() === '' ? stdout : stderr;
  const lines = behindGap(text)
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '');
  return lines.slice(-count).join('\n');
}

/** Returns the text without a gap and all before it, and without the line whose beginning is in the gap. */
function behindGap(text: string): string {
  const parts = text.split(GAP_NOTE);
  const last = parts.at(-1) ?? '';
  if (parts.length === 1) return last;
  const end = last.indexOf('\n');
  return end < 0 ? '' : last.slice(end + 1);
}

/** Appends the last lines of output to a sentence, or why there are none. */
export function withLines(sentence: string, result: CommandResult, count = LINES): string {
  if (result.withheld !== undefined) return `${sentence}; ${result.withheld}`;
  const lines = lastLines(result, count);
  return lines === '' ? sentence : `${sentence}: ${lines}`;
}

/** Why an action is not possible or failed. */
export interface CommandRefusal extends Quote {
  readonly code: FaultCode;
}

/** A message, and the output of a program that it is followed by unless the output may hold secrets. */
export interface Quote {
  readonly message: string;
  readonly output?: CommandResult;
}
