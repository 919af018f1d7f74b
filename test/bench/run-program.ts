/** Runs a program to its end, and measures it. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface RunOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Statuses that are no failure; 0 alone when absent. */
  readonly statuses?: readonly number[];
}

/** Milliseconds of a whole process and of the children that it waited for. */
export interface Taken {
  readonly wall: number;
  readonly cpu: number;
}

/** Node does not tell what a child has used of the processor; the shell does. */
const TIMED = `
TIMEFORMAT='%U %S'
begin=$EPOCHREALTIME
{ time "$@" >/dev/null 2>&3; } 3>&2 2>&1
status=$?
echo "$begin $EPOCHREALTIME"
exit "$status"
`;

/** A command that runs the program without its output, and prints what `takenOf` reads. */
export const timed = (program: readonly string[]): readonly string[] => ['bash', '-c', TIMED, 'bash', ...program];

/** Resolves when the program has ended with one of the statuses, and rejects with its messages otherwise. */
export function runProgram(program: readonly string[], { env, statuses = [0] }: RunOptions): Promise<Taken> {
  return new Promise((resolve, reject) => {
    const [shell = '', ...args] = timed(program);
    const child = spawn(shell, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let errors = '';
    let times = '';
    child.stderr.on('data', (text) => {
      errors = (errors + text).slice(-2_000);
    });
    child.stdout.on('data', (text) => {
      times += text;
    });
    child.on('error', reject);
    child.on('close', (status) => {
      if (status !== null && statuses.includes(status)) resolve(takenOf(times));
      else reject(new Error(`${program.slice(0, 8).join(' ')} ended with ${status}: ${errors}`));
    });
  });
}

/** Reads the output of a timed command; some languages write numbers with a comma. */
export function takenOf(times: string): Taken {
  const [user = 0, system = 0, begin = 0, end = 0] = times
    .replaceAll(',', '.')
    .trim()
    .split(/\s+/)
    .map((seconds) => Number(seconds) * 1_000);
  return { wall: end - begin, cpu: user + system };
}

/** Milliseconds between looks at a process. */
const LOOK_EVERY = 2;

/** The most resident memory that a process itself has had, in bytes; 0 when it was over before it was looked at. */
export async function peakMemory([file = '', ...args]: readonly string[], { env }: RunOptions): Promise<number> {
  const child = spawn(file, args, { env, stdio: 'ignore' });
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, highWaterMark(child.pid ?? 0));
  }, LOOK_EVERY);
  await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  }).finally(() => clearInterval(timer));
  return peak;
}

/** The most resident memory that a process has had so far, in bytes; 0 when it has ended. */
export function highWaterMark(pid: number): number {
  try {
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}
