/** Starts programs on this machine and collects what they say. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { refuseRuntimeWarnings } from '../support/runtime-warnings.js';

export interface Outcome {
  /** The exit status; null when a signal ended the program. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly input?: string | Uint8Array;
  readonly env?: NodeJS.ProcessEnv;
  /** After this time the program and its process group are killed and the promise rejects; 30 s by default. */
  readonly timeoutMs?: number;
}

export interface Command {
  readonly child: ChildProcessWithoutNullStreams;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Settles when the program has ended and its output is complete; rejects when it could not be started, or on a warning of Node. */
  readonly ended: Promise<Outcome>;
}

/** Starts a program in a process group of its own, with pipes for its streams. */
export function start(argv: readonly string[], env: NodeJS.ProcessEnv = process.env): Command {
  const [program = '', ...rest] = argv;
  const child = spawn(program, rest, { env, detached: true, stdio: 'pipe' });
  const out = collect(child.stdout);
  const err = collect(child.stderr);
  child.stdin.on('error', () => {});
  const ended = new Promise<Outcome>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status, signal) => {
      try {
        refuseRuntimeWarnings(err());
        resolve({ status, signal, stdout: out(), stderr: err() });
      } catch (error) {
        reject(error);
      }
    });
  });
  ended.catch(() => {});
  return { child, stdout: out, stderr: err, ended };
}

/** Runs a program to its end, whatever its status. */
export async function run(argv: readonly string[], options: CommandOptions = {}): Promise<Outcome> {
  return finish(start(argv, options.env), options);
}

/** Gives a started program its input and waits for its end. */
export async function finish(command: Command, options: CommandOptions = {}): Promise<Outcome> {
  const { timeoutMs = 30_000 } = options;
  const { pid } = command.child;
  command.child.stdin.end(options.input);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    if (pid !== undefined) signal(-pid, 'SIGKILL');
  }, timeoutMs);
  const outcome = await command.ended.finally(() => clearTimeout(timer));
  if (timedOut)
    throw new Error(`${describe(command.child.spawnargs)} was killed after ${timeoutMs} ms${said(outcome)}`);
  return outcome;
}

/** Runs a program that has to succeed and returns its standard output. */
export async function mustRun(argv: readonly string[], options: CommandOptions = {}): Promise<string> {
  const outcome = await run(argv, options);
  if (outcome.status === 0) return outcome.stdout;
  throw new Error(`${describe(argv)} ended with ${outcome.status ?? outcome.signal}${said(outcome)}`);
}

function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}

/** Sends a signal to a process (or, negated, its group), which may have ended by itself in the meantime. */
export function signal(pid: number, name: NodeJS.Signals | number): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

function describe(argv: readonly string[]): string {
  return `"${argv.join(' ')}"`;
}

function said({ stdout, stderr }: Outcome): string {
  const text = `${stderr.trim()}\n${stdout.trim()}`.trim();
  return text === '' ? '' : `:\n${text}`;
}
