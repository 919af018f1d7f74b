/** Ends a process whose terminal is gone: Node 20 aborts when it cannot restore the modes of such a terminal. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';

/**
 * Puts /dev/null in the place of standard streams whose terminal was closed. Call it when the process exits: Node
 * restores the modes of the terminals that it was started with, and skips descriptors that are another file by then.
 */
export function releaseLostTerminal(): void {
  for (const descriptor of [0, 1, 2]) {
    try {
      // A terminal that has hung up is still a device, and no longer a terminal.
      if (!fstatSync(descriptor).isCharacterDevice() || isatty(descriptor)) continue;
      closeSync(descriptor);
      // The lowest free descriptor, which is the one just closed.
      openSync('/dev/null', 'r+');
    } catch {
      // A closed descriptor needs no terminal.
    }
  }
}
