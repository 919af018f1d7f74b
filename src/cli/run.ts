/** The command line; `bin` adds only the process. */
import type { Clock } from '../kernel/clock.js';
import { VERSION } from '../kernel/version.js';
import type { Env } from './context.js';
import type { Interrupts } from './interrupts.js';
import type { Programs } from './programs.js';
import type { InputStream, OutputStream } from './render/printer.js';

export interface CliOptions {
  /** The words behind the name of the program. */
  readonly argv: readonly string[];
  readonly env: Env;
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly programs: Programs;
  readonly clock: Clock;
  /** Calls its listener at each Ctrl-C and the like until the returned function is called; absent, the signals of this process. */
  readonly interrupts?: Interrupts;
}

/** @returns the exit status; never throws for what a command does */
export async function runCli(options: CliOptions): Promise<number> {
  const [word, ...others] = options.argv;
  // The quickest of all questions waits for nothing else to be loaded, unless the answer cannot be written.
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
