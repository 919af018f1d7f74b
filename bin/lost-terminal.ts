/** A terminal that is lost: a closed window, a cut ssh connection. Node 20 has no way of its own to bear it. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';

/**
 * Lets questions and screens restore the mode of a terminal that is lost: Node reports that as an error of the stream,
 * which nothing hears once a question is over, and so ended the process with a stack. SIGHUP ends the command.
 */
export function bearLostTerminal(stdin: NodeJS.ReadStream): void {
  if (!stdin.isTTY) return;
  const setRawMode = stdin.setRawMode.bind(stdin);
  stdin.setRawMode = (isRaw) => (isatty(0) ? setRawMode(isRaw) : stdin);
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
