/** Runs the programs that make packages. */
import { spawnSync } from 'node:child_process';

/** A failure whose message is all that the caller needs to know. */
export class PackagingError extends Error {}

/**
 * Runs a program and returns its standard output; its diagnostics go to standard error.
 *
 * @param {string} program
 * @param {readonly string[]} argv
 * @param {{cwd?: string, env?: NodeJS.ProcessEnv, input?: string}} [options]
 * @throws {PackagingError} when it cannot be started or fails
 */
export function run(program, argv, options = {}) {
  const { status, error, stdout } = spawnSync(program, argv, {
    ...options,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'inherit'],
    maxBuffer: 256 * 1024 * 1024,
  });
  if (error) throw new PackagingError(`${program} cannot be started: ${error.message}`);
  if (status !== 0) throw new PackagingError(`"${program} ${argv.join(' ')}" failed with status ${status}\n${stdout}`);
  return stdout;
}

/** Returns the path of a program, or null when it is not installed. */
export function find(program) {
  const { status, stdout } = spawnSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}
