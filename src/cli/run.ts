/** Entry point of the command line; `bin` adds only the process. */
import type { Clock } from '../kernel/clock.js';
import { VERSION } from '../kernel/version.js';
import type { Env } from './context.js';
import type { Interrupts } from './interrupts.js';
import type { Programs } from './programs.js';
import type { InputStream, OutputStream } from './render/printer.js';

export interface CliOptions {
  /** Words after the program name. */
  readonly argv: readonly string[];
  readonly env: Env;
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly programs: Programs;
  readonly clock: Clock;
  /** Source of interrupts [the signals of this process]. */
  readonly interrupts?: Interrupts;
}

/** Returns the exit status. Prints all failures of the command instead of throwing. */
export async function runCli(options: CliOptions): Promise<number> {
  const [word, ...others] = options.argv;
  // `--version` alone loads nothing else, unless its output fails.
  const isQuick = (word === '--version' || word === '-V') && others.length === 0;
  if (isQuick && (await isWritten(options.stdout, `orch ${VERSION}\n`))) return 0;
  const { dispatch } = await import('./dispatch.js');
  return dispatch(options);
}

function isWritten(stream: OutputStream, text: string): Promise<boolean> {
  return new Promise((resolve) => {
    stream.once('error', () => resolve(false));
    stream.write(text, (error) => resolve(!error));
  });
}
