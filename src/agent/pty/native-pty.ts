/**
 * The only file that touches private parts of node-pty: its native `forkpty`, because the reader of the library loses the end of
 * short output. They belong to one version, and a test compares it with the installed one.
 */
import { createRequire } from 'node:module';
import { Fault } from '../../kernel/fault.js';
import { COMPILE_HINT, loadFailure } from '../../kernel/native-libraries.js';

/** Version of node-pty that this file fits. */
export const NODE_PTY_VERSION = '1.1.0';

export interface NativePty {
  /** Starts a program on a new terminal. The descriptor is non-blocking, and every later child process inherits it. Throws without a PTY. */
  fork(
    file: string,
    args: readonly string[],
    env: readonly string[],
    cwd: string,
    cols: number,
    rows: number,
    uid: number,
    gid: number,
    utf8: boolean,
    helperPath: string,
    onExit: (code: number, signal: number) => void,
  ): { readonly fd: number; readonly pid: number; readonly pty: string };
  resize(fd: number, cols: number, rows: number): void;
}

/** Loads the native module. Throws `native_module_missing`. */
export function loadNativePty(): NativePty {
  try {
    const utils: unknown = createRequire(import.meta.url)('node-pty/lib/utils');
    return (utils as { loadNativeModule(name: string): { module: NativePty } }).loadNativeModule('pty').module;
  } catch (error) {
    throw new Fault(
      'native_module_missing',
      `terminals need the package node-pty, and it does not load: ${loadFailure(error)}`,
      {
        hint: COMPILE_HINT,
        cause: error,
      },
    );
  }
}
