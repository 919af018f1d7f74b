/** The native part of node-pty: its `forkpty` alone, because its own reader loses the end of short output. */
import { createRequire } from 'node:module';
import { Fault, messageOf } from '../../kernel/fault.js';

export interface NativePty {
  /** The descriptor is non-blocking and open in every process that is started later without care. Throws when there is no PTY. */
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

/** Throws `native_module_missing`. */
export function loadNativePty(): NativePty {
  try {
    const utils: unknown = createRequire(import.meta.url)('node-pty/lib/utils');
    return (utils as { loadNativeModule(name: string): { module: NativePty } }).loadNativeModule('pty').module;
  } catch (error) {
    throw new Fault('native_module_missing', `terminals need the package node-pty: ${messageOf(error)}`, {
      hint: 'install orch again on the machine of the agent, with a compiler there',
      cause: error,
    });
  }
}
