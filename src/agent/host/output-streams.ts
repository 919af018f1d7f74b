/** The streams that a program writes to, and how what it writes comes back. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Capture } from './capture.js';
import { FileOutput } from './file-output.js';
import { environmentOf } from './launch.js';
import { PipeOutput } from './pipe-output.js';
import type { Workplace } from './workplace.js';

export interface OutputStream {
  /** For the program. */
  readonly descriptor: number;
  readonly capture: Capture;
  /** Closes the descriptor of this process; resolves when the last process that could write has ended or closed its own. */
  start(): Promise<void>;
  /** Takes what has been written so far. */
  look(): void;
  /** Does so for the last time. Safe without `start`, and to be called once. */
  stop(): void;
}

export interface OutputStreams {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
}

const run = promisify(execFile);

/** Throws when the system does not let it. */
export async function openStreams({ path }: Workplace, outlives: boolean): Promise<OutputStreams> {
  const [stdout, stderr] = [join(path, 'stdout'), join(path, 'stderr')];
  if (outlives) return both((path) => new FileOutput(path), stdout, stderr);
  await run('mkfifo', ['-m', '600', stdout, stderr], { env: environmentOf({}) });
  return both((path) => new PipeOutput(path), stdout, stderr);
}

function both(open: (path: string) => OutputStream, first: string, second: string): OutputStreams {
  const stdout = open(first);
  try {
    return { stdout, stderr: open(second) };
  } catch (error) {
    stdout.stop();
    throw error;
  }
}
