/** Hands standard input on to the command of the one agent there is. */
import type { TerminalSession } from '../../client/terminal/terminal-session.js';
import type { InputStream } from '../render/printer.js';

export interface ExecInput {
  /** To be called when the session exists. */
  begin(session: Pick<TerminalSession, 'sendInput' | 'sendEof'>): void;
  /** There is room again. */
  drain(): void;
  /** Nobody reads any more. The rest of the input is left to others. */
  stop(): void;
}

export function execInput(stdin: InputStream): ExecInput {
  let session: Pick<TerminalSession, 'sendInput' | 'sendEof'> | null = null;
  const onData = (chunk: Buffer | string) => {
    if (session?.sendInput(Buffer.from(chunk)) === false) stdin.pause();
  };
  const onEnd = () => session?.sendEof();
  return {
    begin: (opened) => {
      session = opened;
      stdin.on('data', onData);
      stdin.once('end', onEnd);
      // A terminal that is gone, or a directory in place of a file: as if it were at its end.
      stdin.once('error', onEnd);
    },
    drain: () => {
      if (session !== null) stdin.resume();
    },
    stop: () => {
      session = null;
      stdin.off('data', onData);
      stdin.off('end', onEnd);
      // An open pipe that nobody reads must not keep the process alive.
      stdin.destroy();
    },
  };
}
