/** Runs a program that prints facts, within bounds of time and output. */
import { type ChildProcess, spawn } from 'node:child_process';
import { FACT_LIMITS } from '../../kernel/facts.js';
import { messageOf } from '../../kernel/fault.js';
import { environmentOf, launchArguments } from '../host/launch.js';

/** Bytes of errors of which the last line is shown. */
const MAX_ERRORS = 4_096;

/**
 * Resolves with what the program prints. Rejects with an `Error` that says why there is no output.
 * @param isSuccess tells whether an exit status is one of success [default: 0]
 */
export function runFactProgram(
  path: string,
  milliseconds: number,
  words: readonly string[] = [],
  isSuccess: (status: number) => boolean = (status) => status === 0,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = environmentOf({});
    const [first, ...args] = launchArguments(path, words, { outlives: false, env });
    let child: ChildProcess;
    try {
      child = spawn(first, args, { cwd: '/', detached: true, env, stdio: ['ignore', 'pipe', 'pipe'] });
    } catch (error) {
      reject(new Error(`${path} cannot be started: ${messageOf(error)}`));
      return;
    }
    const hasSucceeded = (status: number | null | undefined) => status != null && isSuccess(status);
    const output: Buffer[] = [];
    let size = 0;
    let errors = '';
    let end: { readonly code: number | null; readonly signal: string | null } | null = null;
    const settle = (problem: string | null) => {
      clearTimeout(timer);
      endGroup(child);
      child.stdout?.destroy();
      child.stderr?.destroy();
      if (problem === null) resolve(Buffer.concat(output).toString('utf8'));
      else reject(new Error(`${path} ${problem}`));
    };
    const timer = setTimeout(() => {
      // A process that it left behind may hold the output open; the program itself has ended then.
      settle(hasSucceeded(end?.code) ? null : `took longer than ${milliseconds / 1000} s and was ended`);
    }, milliseconds);
    child.stdout?.on('data', (data: Buffer) => {
      output.push(data);
      size += data.length;
      if (size > FACT_LIMITS.bytes) settle(`printed more than ${FACT_LIMITS.bytes} bytes and was ended`);
    });
    child.stderr?.on('data', (data: Buffer) => {
      errors = (errors + data.toString('utf8')).slice(-MAX_ERRORS);
    });
    child.once('error', (error) => settle(`cannot be started: ${messageOf(error)}`));
    child.once('exit', (code, signal) => {
      end = { code, signal };
    });
    child.once('close', (code, signal) => {
      if (hasSucceeded(code)) settle(null);
      else settle(`${code === null ? `was ended by ${signal}` : `ended with status ${code}`}${lastLine(errors)}`);
    });
  });
}

function lastLine(errors: string): string {
  const line = errors.trim().split('\n').at(-1)?.replace(/\p{C}/gu, ' ').slice(0, 200) ?? '';
  return line === '' ? '' : `: ${line}`;
}

/** Ends the program and what it has started, which may have outlived it. */
function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All have ended.
  }
}
