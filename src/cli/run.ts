import { VERSION } from '../kernel/version.js';
import type { CliOptions } from './cli-options.js';
import type { OutputStream } from './render/streams.js';

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
