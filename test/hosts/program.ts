/** A program that goes on running in a host while the test does other things. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, type Outcome, signal } from './command.js';
import { childrenOf, hasProgram } from './processes.js';

export interface Program {
  /** Its output so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly write: (text: string) => void;
  readonly closeInput: () => void;
  /** Sends a signal to the program itself, SIGTERM by default; nothing happens when it has ended. */
  readonly kill: (signal?: NodeJS.Signals) => void;
  /** Settles with status and output when it has ended, or its host has. */
  readonly ended: Promise<Outcome>;
  /** Waits until its output (both streams) matches; rejects after the time, or when it ends without. */
  readonly said: (pattern: RegExp, timeoutMs?: number) => Promise<RegExpExecArray>;
}

/** Wraps a command that was started in a host, as soon as the program itself can be signalled (or has ended). */
export async function programOf(command: Command): Promise<Program> {
  const { stdin, pid = 0 } = command.child;
  let over = false;
  command.child.once('exit', () => {
    over = true;
  });
  while (!over && !hasProgram(pid)) await sleep(5);
  return {
    stdout: command.stdout,
    stderr: command.stderr,
    write: (text) => void stdin.write(text),
    closeInput: () => void stdin.end(),
    kill: (name = 'SIGTERM') => killEntered(pid, name),
    ended: command.ended,
    said: (pattern, timeoutMs = 15_000) => waitForOutput(command, pattern, timeoutMs),
  };
}

function killEntered(nsenterPid: number, name: NodeJS.Signals): void {
  for (const pid of childrenOf(nsenterPid)) signal(pid, name);
}

async function waitForOutput(command: Command, pattern: RegExp, timeoutMs: number): Promise<RegExpExecArray> {
  const deadline = Date.now() + timeoutMs;
  let over = false;
  const setOver = (): void => {
    over = true;
  };
  command.ended.then(setOver, setOver);
  for (;;) {
    const last = over || Date.now() > deadline;
    const match = pattern.exec(command.stdout()) ?? pattern.exec(command.stderr());
    if (match !== null) return match;
    if (last) throw new Error(`${pattern} did not appear in:\n${command.stdout()}\n${command.stderr()}`);
    await sleep(20);
  }
}
