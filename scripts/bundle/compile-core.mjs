/** Compiles the core of the bundle: runs what short commands run, so that V8 keeps the functions that they call. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * @param {string} directory where the bundle is
 * @param {string} dispatch the file of the core that runs commands
 * @returns {Buffer} what `vm.Script` takes as `cachedData`
 */
export function compileCore(directory, dispatch) {
  const program = fileURLToPath(new URL('run-core.cjs', import.meta.url));
  // In a process of its own, as commands are: what V8 keeps depends on its flags.
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, directory, dispatch], {
    maxBuffer: 2 ** 26,
  });
  if (status !== 0) throw new Error(`the core of the bundle cannot be compiled: ${stderr}`);
  return stdout;
}
