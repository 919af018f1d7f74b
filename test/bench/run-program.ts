/** Runs a program to its end, and times it. */
import { spawn } from 'node:child_process';

export interface RunOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Statuses that are no failure; 0 alone when absent. */
  readonly statuses?: readonly number[];
}

/** @returns milliseconds from the start of the process to its end */
export function runProgram([file = '', ...args]: readonly string[], options: RunOptions): Promise<number> {
  const { env, statuses = [0] } = options;
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
    let errors = '';
    child.stderr.on('data', (text) => {
      errors += text;
    });
    child.on('error', reject);
    child.on('close', (status) => {
      if (status !== null && statuses.includes(status)) resolve(performance.now() - start);
      else reject(new Error(`${[file, ...args].join(' ')} ended with ${status}: ${errors}`));
    });
  });
}
