/** Runs one command to its end, on every platform: finds the program, gives it a workplace, watches over time and cancels. */
import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import { COMMAND_TIMEOUT_SECS, type Command, type CommandEnd, type CommandResult } from '../../resources/command.js';
import type { Capture } from './capture.js';
import type { HeldPrograms } from './held-programs.js';
import { untilDeadlock } from './own-service.js';
import type { ScriptDirectories, ScriptDirectory } from './script-directory.js';

export interface RunCommandOptions {
  /** Seconds that `timeoutSecs: 'script'` stands for. */
  readonly scriptTimeoutSecs: number;
  readonly workplaces: ScriptDirectories;
  /** Programs that start although their files are gone. */
  readonly held?: HeldPrograms | undefined;
  /** Aborted when the run is cancelled or, with the Fault `interrupted` as reason, when the agent stops. */
  readonly signal?: AbortSignal | undefined;
}

export type NotStarted = Extract<CommandEnd, { how: 'not-started' }>;

/** A command whose program was found. */
export interface CommandTask<Env> {
  readonly command: Command;
  /** Path of the program. */
  readonly program: string;
  readonly env: Env;
}

/** How a platform starts programs. */
interface ProgramRunner<Env> {
  readonly env: Env;
  find(name: string, env: Env): string | NotStarted;
  /** Opens a workplace that the program may read [default: one for the agent alone]. */
  open?(): ScriptDirectory;
  /** Starts the program, waits for its end and returns what it wrote. */
  run(task: CommandTask<Env>, workplace: ScriptDirectory | null): Promise<CommandResult>;
}

/** Milliseconds for which streams are read after the program's end: processes that it leaves behind may hold them open. */
export const GRACE_MS = 1_000;

/** Failures are in the result. Rejects with the Fault `interrupted` when the agent stops and must not wait for the command. */
export async function runCommand<Env>(
  command: Command,
  { workplaces, signal }: RunCommandOptions,
  { env, find, open = () => workplaces.open(), run }: ProgramRunner<Env>,
): Promise<CommandResult> {
  if (isToEnd(command, signal)) return withoutOutput({ how: 'cancelled' });
  const program = find(command.argv[0], env);
  if (typeof program !== 'string') return withoutOutput(program);
  let workplace: ScriptDirectory | null = null;
  try {
    workplace = openWorkplace(open, command);
    return await run({ command, program, env }, workplace);
  } catch (error) {
    if (isFault(error, 'interrupted')) throw error;
    return withoutOutput({ how: 'not-started', missing: false, message: messageOf(error) });
  } finally {
    workplace?.remove();
  }
}

/** Returns null where no directory can be written and the command can do without one. */
function openWorkplace(open: () => ScriptDirectory, { script, user, lifetime }: Command): ScriptDirectory | null {
  try {
    return open();
  } catch (error) {
    if (script !== undefined || user !== undefined || lifetime === 'outlive' || process.platform === 'win32')
      throw error;
    return null;
  }
}

export const withoutOutput = (end: CommandEnd): CommandResult => ({ end, stdout: '', stderr: '', truncated: false });

/**
 * Resolves when the program has ended, or when it was ended after its time or a cancel. Rejects with the Fault `interrupted` when
 * the agent stops and leaves it running: it outlives the agent, or waits for the agent's end itself.
 * @param endTree ends the program and its descendants
 */
export async function supervise(
  child: ChildProcess,
  command: Command,
  { scriptTimeoutSecs, signal }: RunCommandOptions,
  endTree: (exited: Promise<CommandEnd>) => Promise<void>,
): Promise<CommandEnd> {
  const exited = endOf(child);
  const ended = new AbortController();
  const { timeoutSecs = COMMAND_TIMEOUT_SECS } = command;
  const seconds = timeoutSecs === 'script' ? scriptTimeoutSecs : timeoutSecs;
  let stop: (end: CommandEnd) => void = () => {};
  let leave: (fault: Fault) => void = () => {};
  const stopped = new Promise<CommandEnd>((resolve, reject) => {
    stop = resolve;
    leave = reject;
  });
  const timer = setTimeout(() => stop({ how: 'timed-out', seconds }), seconds * 1000);
  const cancel = () => {
    if (isToEnd(command, signal)) stop({ how: 'cancelled' });
    if (!isInterrupted(signal)) return;
    const fault = new Fault('interrupted', `the agent stops and does not wait for ${command.argv[0]}`);
    if (command.lifetime === 'outlive') leave(fault);
    else if (child.pid !== undefined) void untilDeadlock(child.pid, ended.signal).then(() => leave(fault));
  };
  signal?.addEventListener('abort', cancel, { once: true });
  // The cancel may have come while the program was being started.
  cancel();
  try {
    const end = await Promise.race([exited, stopped]);
    if (end.how === 'timed-out' || end.how === 'cancelled') await endTree(exited);
    return end;
  } finally {
    ended.abort();
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
    child.unref();
  }
}

/** Resolves with the end that a program came to by itself. */
export function endOf(child: ChildProcess): Promise<CommandEnd> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ how: 'not-started', missing: false, message: messageOf(error) }));
    child.once('exit', (code, signal) => {
      resolve(code === null ? { how: 'killed', signal: signal ?? 'an unknown signal' } : { how: 'exited', code });
    });
  });
}

/** True when a cancel ends the command. A stop of the agent lets its commands finish. */
const isToEnd = ({ lifetime }: Command, signal: AbortSignal | undefined): boolean =>
  lifetime === 'end' && signal !== undefined && signal.aborted && !isInterrupted(signal);

const isInterrupted = (signal: AbortSignal | undefined): boolean => isFault(signal?.reason, 'interrupted');

/** Resolves with the promise, or after that many milliseconds. Returns whether the promise was in time. */
export async function settleWithin(promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const over = new AbortController();
  const time = delay(milliseconds, false, { signal: over.signal }).catch(() => false);
  const isInTime = await Promise.race([promise.then(() => true), time]);
  over.abort();
  return isInTime;
}

/** Says in the errors of a script that a process which it left behind had the output still open, so that it may go on. */
export function noteOpenOutput({ script }: Command, stderr: Capture): void {
  if (!script) return;
  const before = stderr.text();
  const lineEnd = before === '' || before.endsWith('\n') ? '' : '\n';
  stderr.add(Buffer.from(`${lineEnd}${OPEN_OUTPUT}\n`));
}

const OPEN_OUTPUT =
  'orch: a process that the script left behind has its output open; what it writes from now on is not kept';
