/** Handles a lost terminal (a closed window, a cut ssh connection), which Node 20 does not handle itself. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';

/**
 * Makes `setRawMode` do nothing once the terminal of standard input is lost, and returns the stream. Otherwise Node emits
 * an error that has no listener after a question, and ends the process with a stack. SIGHUP ends the command.
 */
export function ignoreLostTerminal(stdin: NodeJS.ReadStream): NodeJS.ReadStream {
  if (!stdin.isTTY) return stdin;
  const setRawMode = stdin.setRawMode.bind(stdin);
  stdin.setRawMode = (isRaw) => (isatty(0) ? setRawMode(isRaw) : stdin);
  return stdin;
}

/**
 * Puts /dev/null in the place of standard streams whose terminal was closed. Call it when the process exits: Node
 * restores the modes of the terminals that it was started with, aborts when it cannot, and skips descriptors that are
 * another file by then.
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
