/** Watches over a program on Windows until it has ended, in time or not. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isFault, messageOf } from '../../kernel/fault.js';
import { COMMAND_TIMEOUT_SECS, type Command, type CommandEnd } from '../../resources/command.js';

export interface SupervisionOptions {
  /** Usually `C:\Windows`. */
  readonly systemRoot: string;
  /** What `timeoutSecs: 'script'` means. */
  readonly scriptTimeoutSecs: number;
  /** Aborted when the run is cancelled or, with the Fault `interrupted` as reason, when the agent stops. */
  readonly signal?: AbortSignal | undefined;
}

/** What programs have to be gone after they were ended. */
const KILL_MS = 10_000;

/** Resolves when the program has ended or was ended, and with it all that it has started. */
export async function supervise(
  child: ChildProcess,
  command: Command,
  options: SupervisionOptions,
): Promise<CommandEnd> {
  const exited = endOf(child);
  const stop = stopOf(command, options);
  try {
    const end = await Promise.race([exited, stop.asked]);
    if (end.how === 'timed-out' || end.how === 'cancelled') {
      await endTree(child, options);
      await within(exited, KILL_MS);
    }
    return end;
  } finally {
    stop.dispose();
    child.unref();
  }
}

/** How the program ends by itself. */
function endOf(child: ChildProcess): Promise<CommandEnd> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ how: 'not-started', missing: false, message: messageOf(error) }));
    child.once('exit', (code, signal) => {
      resolve(code === null ? { how: 'killed', signal: signal ?? 'an unknown signal' } : { how: 'exited', code });
    });
  });
}

/** Ends a process and its descendants. Windows has no groups of processes; `taskkill` walks from parent to child. */
async function endTree(child: ChildProcess, { systemRoot }: SupervisionOptions): Promise<void> {
  const { pid } = child;
  if (pid === undefined) return;
  const system = join(systemRoot, 'System32');
  const killer = spawn(join(system, 'taskkill.exe'), ['/PID', String(pid), '/T', '/F'], {
    cwd: system,
    stdio: 'ignore',
    windowsHide: true,
  });
  await within(endOf(killer), KILL_MS);
  // Where taskkill is missing or fails, at least the program itself is ended.
  child.kill('SIGKILL');
}

/** Tells when the program has to be ended. */
function stopOf(command: Command, { scriptTimeoutSecs, signal }: SupervisionOptions) {
  const { timeoutSecs = COMMAND_TIMEOUT_SECS } = command;
  const seconds = timeoutSecs === 'script' ? scriptTimeoutSecs : timeoutSecs;
  let ask: (end: CommandEnd) => void = () => {};
  const asked = new Promise<CommandEnd>((resolve) => {
    ask = resolve;
  });
  const timer = setTimeout(() => ask({ how: 'timed-out', seconds }), seconds * 1000);
  const cancel = () => {
    if (isToEnd(command, signal)) ask({ how: 'cancelled' });
  };
  signal?.addEventListener('abort', cancel, { once: true });
  const dispose = () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  };
  return { asked, dispose };
}

/** An agent that stops lets its commands finish. */
export const isToEnd = ({ lifetime }: Command, signal: AbortSignal | undefined): boolean =>
  lifetime === 'end' && signal !== undefined && signal.aborted && !isFault(signal.reason, 'interrupted');

/** Resolves with the promise, or when it takes longer. */
export async function within(promise: Promise<unknown>, milliseconds: number): Promise<void> {
  const over = new AbortController();
  const time = delay(milliseconds, undefined, { signal: over.signal }).catch(() => {});
  await Promise.race([promise, time]);
  over.abort();
}
